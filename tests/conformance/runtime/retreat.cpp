// SPDX-License-Identifier: BSL-1.0
// Workers that leave the work to others because the machine has no processor for them: I9.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/thread_meter.hpp>
#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/fiber_group.hpp>
#include <support/each_mechanism.hpp>
#include <support/finally.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_retreat {

namespace faults = ramie::platform::faults;
using namespace std::chrono_literals;
using ramie::platform::fault;
using test::findings;

// f(rt, found) as a fiber, for every mechanism, on a machine that makes every thread wait for its processor.
template <class F>
void on_a_crowded_machine(unsigned workers, F f) {
  if (ramie::platform::thread_meter().read().times == 0) LEFT_OUT("this system does not tell");
  const test::finally all_well([] { faults::plan_for(fault::processor, 0, 0); });
  faults::plan_for(fault::processor, 1, faults::for_good);
  for (const auto which : test::each_mechanism()) {
    auto o = test::with_workers(workers);
    o.elastic = false;  // nobody else can help
    o.io = which;
    findings found;
    const auto before = test::open_descriptors();
    {
      ramie::runtime rt(o);
      rt.run([&] { f(rt, found); });
    }
    INFO("mechanism " << static_cast<int>(which) << ", workers " << workers);
    CHECK(found.wrong() == "");
    CHECK(test::open_descriptors() == before);
  }
}

// Bytes go to and fro on a few connections until somebody has said that it is enough, and are all accounted for.
class traffic {
 public:
  static constexpr int lines = 8;
  using counts = std::array<unsigned, lines>;

  explicit traffic(findings& found) : found_(found) {
    for (int i = 0; i < lines; ++i) n_.spawn([this, i] { ping(answered_[static_cast<std::size_t>(i)]); });
  }
  void stop() { enough_ = true; }
  void end() {
    stop();
    n_.join();
    EXPECT(found_, sent_ >= lines);
    for (const unsigned answered : answers()) sent_ -= answered;
    EXPECT(found_, sent_ == 0);
  }
  [[nodiscard]] counts answers() const {
    counts now;
    std::copy(answered_.begin(), answered_.end(), now.begin());
    return now;
  }

 private:
  void ping(std::atomic<unsigned>& answered) {
    auto [here, there] = ramie::unix_stream::pair();
    ramie::nursery both;
    both.spawn([&far = there] {
      std::array<std::byte, 8> data;
      while (const auto count = far.read_some(data)) far.write_all(std::span(data).first(count));
    });
    std::array<std::byte, 8> data{};
    do {
      data[0] = static_cast<std::byte>(++sent_);
      const auto expected = data[0];
      here.write_all(data);
      here.read_exactly(data);
      EXPECT(found_, data[0] == expected);
      ++answered;
    } while (!enough_);
    here.shutdown(ramie::shutdown_part::write);
    both.join();
  }

  findings& found_;
  std::atomic<bool> enough_{false};
  std::atomic<unsigned> sent_{0};
  std::array<std::atomic<unsigned>, lines> answered_{};
  ramie::nursery n_;
};

// Until somebody has gone out once more. Workers that are always busy do not.
void wait_for_retreat(ramie::runtime& rt) {
  const auto before = rt.stats().total.retreats;
  while (rt.stats().total.retreats == before) ramie::sleep_for(100us);
}

TEST_CASE("workers without a processor leave the work to the others, and nothing is lost", "[conformance][retreat]") {
  for (const unsigned workers : {2u, 4u}) {
    on_a_crowded_machine(workers, [](ramie::runtime& rt, findings& found) {
      traffic busy(found);
      for (int i = 0; i < (test::large() ? 8 : 1); ++i) wait_for_retreat(rt);
      busy.end();
    });
  }
}

// Which worker is out, and how much it has run. None: nobody is.
struct absence {
  std::size_t who;
  std::uint64_t polls, retreats;
  bool operator==(const absence&) const = default;
};
std::optional<absence> look_for_absence(const ramie::runtime_stats& before, const ramie::runtime_stats& now) {
  for (std::size_t i = 0; i < now.workers.size() && now.retreated_workers == 1; ++i) {
    const auto& w = now.workers[i];
    if (w.retreats != before.workers[i].retreats) return absence{i, w.polls, now.total.retreats};
  }
  return std::nullopt;
}

// All connections go on, and the one who is out runs none of them. Again and again, since the machine may really be crowded:
// then those who stay do not get on, and the one who is out is back too soon.
TEST_CASE("a worker that is out runs nothing, and holds nothing up", "[conformance][retreat]") {
  on_a_crowded_machine(2, [](ramie::runtime& rt, findings& found) {
    traffic busy(found);
    bool shown = false;
    while (!shown) {
      const auto before = rt.stats();
      wait_for_retreat(rt);
      ramie::sleep_for(1ms);  // it counts itself before it goes
      const auto begun = look_for_absence(before, rt.stats());
      const auto answered = busy.answers();
      const auto all_got_on = [&] {
        const auto now = busy.answers();
        for (std::size_t i = 0; i < now.size(); ++i) {
          if (now[i] < answered[i] + 5) return false;
        }
        return true;
      };
      while (begun && !shown && look_for_absence(before, rt.stats()) == begun) {
        shown = all_got_on() && look_for_absence(before, rt.stats()) == begun;
        if (!shown) ramie::sleep_for(100us);
      }
    }
    busy.end();
  });
}

TEST_CASE("a worker that is out comes back when the others do not get on", "[conformance][retreat]") {
  on_a_crowded_machine(2, [](ramie::runtime& rt, findings& found) {
    traffic busy(found);
    wait_for_retreat(rt);
    busy.stop();  // a worker that is always busy takes nothing over
    // Neither yields before the other has come: that takes both workers.
    std::atomic<int> here{0};
    ramie::nursery both;
    for (int i = 0; i < 2; ++i) {
      both.spawn([&] {
        here.fetch_add(1);
        test::until([&] { return here.load() == 2; });
      });
    }
    both.join();
    busy.end();
  });
}

TEST_CASE("a worker that is out sleeps when all do", "[conformance][retreat]") {
  on_a_crowded_machine(2, [](ramie::runtime& rt, findings& found) {
    {
      traffic busy(found);
      wait_for_retreat(rt);
      busy.end();
    }
    auto [here, there] = ramie::unix_stream::pair();
    ramie::nursery n;
    n.spawn([&near = here] {
      std::array<std::byte, 1> data;
      (void)near.read_some(data);
    });
    ramie::testing::wait_all_blocked();  // which nobody is who only rests
    there.close();
    n.join();
  });
}

TEST_CASE("a worker with a processor stays", "[conformance][retreat]") {
  auto o = test::with_workers(1);  // has nobody to leave anything to
  ramie::runtime rt(o);
  const test::finally all_well([] { faults::plan_for(fault::processor, 0, 0); });
  faults::plan_for(fault::processor, 1, faults::for_good);
  findings found;
  rt.run([&] {
    traffic busy(found);
    for (int i = 0; i < test::scaled(20'000, 2'000); ++i) ramie::yield();
    busy.end();
  });
  CHECK(found.wrong() == "");
  CHECK(rt.stats().total.retreats == 0);
}

}  // namespace conformance_retreat
