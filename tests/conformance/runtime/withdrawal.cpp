// SPDX-License-Identifier: BSL-1.0
// Workers that leave their fibers to the worker with which they share their channels: I10.
#include <chrono>
#include <cstdint>
#include <vector>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/faults.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/ramie.hpp>
#include <support/finally.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>
#include <support/threadless_runtime.hpp>

namespace conformance_withdrawal {

namespace faults = ramie::platform::faults;
using namespace ramie::runtime_internal;
using namespace std::chrono_literals;
using ramie::platform::fault;
using test::findings;
using test::threadless_runtime;

// The calling thread is the first of two workers, of which so many run. When its tick ends it has waited for locks for
// half of the last four seconds.
class entangled_worker : threadless_runtime {
 public:
  explicit entangled_worker(std::uint32_t running) : threadless_runtime(2) {
    test::live(sched()).store(running);
    set_this_worker(&w());
    for (std::size_t i = 0; i < queued; ++i) push(fibers[i]);
    run_queues::push_woken(w(), fibers[queued]);
    const auto now = ramie::platform::steady_clock::instance().now();
    (void)w().dispatch.partners.look(0ns, now - 4s);
    (void)w().dispatch.partners.look(1s, now - 2s);
    w().lock_user.waited_ns = std::chrono::nanoseconds(2s).count();
    w().dispatch.pacing.restart(w().count.polls.get() + 1 - budget_per_tick, now);
  }
  ~entangled_worker() { set_this_worker(nullptr); }

  static constexpr std::size_t queued = 5;

  // Those that are taken by fibers that park, up to the next turn of the loop.
  std::size_t take_on_the_way() {
    std::size_t count = 0;
    while (dispatcher::next_local(w()) != nullptr) ++count;
    return count;
  }
  fiber* take_in_the_loop() { return sched().dispatch.next(w()); }

  using threadless_runtime::runtime;
  using threadless_runtime::w;
};

TEST_CASE("an entangled worker moves all it has to the injection queue, and comes back when nobody takes it",
          "[conformance][withdrawal]") {
  entangled_worker me(2);
  const auto on_the_way = me.take_on_the_way();
  REQUIRE(on_the_way == 1);  // at the end of the tick
  CHECK(me.runtime().stats().total.withdrawals == 0);
  CHECK(me.take_in_the_loop() != nullptr);
  CHECK(me.runtime().stats().total.withdrawals == 1);
  CHECK(me.runtime().stats().workers[0].withdrawals == 1);
  CHECK(me.runtime().stats().total.batch_fetches == 1);  // that is where it was
  CHECK(me.runtime().stats().retreated_workers == 0);
  CHECK(on_the_way + 1 + me.take_on_the_way() == entangled_worker::queued + 1);  // it asks once
}

TEST_CASE("the last worker does not withdraw", "[conformance][withdrawal]") {
  entangled_worker me(1);
  REQUIRE(me.take_on_the_way() == 1);
  CHECK(me.take_in_the_loop() != nullptr);
  CHECK(me.runtime().stats().total.withdrawals == 0);
  CHECK(me.runtime().stats().total.batch_fetches == 0);
  CHECK(2 + me.take_on_the_way() == entangled_worker::queued + 1);
}

// Every wait for a lock counts as a long one, so workers withdraw again and again, unless the machine is so busy that one
// of them is always taken for stalled. Nobody waits for that.
TEST_CASE("workers withdraw from what they share, and nothing is lost", "[conformance][withdrawal]") {
  ramie::platform::choose_fences();
  if (!ramie::platform::asymmetric()) LEFT_OUT("no lock is granted to anybody here");
  const test::finally all_well([] { faults::plan_for(fault::granted_lock, 0, 0); });
  faults::plan_for(fault::granted_lock, 1, faults::for_good);
  constexpr int senders = 4;
  findings found;
  ramie::runtime rt(test::with_workers(2));
  rt.run([&] {
    ramie::channel<long> c(8);
    std::vector<long> sent(senders);
    ramie::nursery out;
    std::vector<ramie::task<long>> sums;
    for (int i = 0; i < senders; ++i) {
      sums.push_back(out.spawn([c] {
        long sum = 0;
        for (const long v : c) sum += v;
        return sum;
      }));
    }
    {
      ramie::nursery in;
      for (auto& count : sent) {
        in.spawn([&, c] {
          const auto enough = static_cast<std::uint64_t>(test::scaled(20, 2));
          while (count < test::scaled(1'000'000, 50'000) && (count % 64 != 0 || rt.stats().total.withdrawals < enough)) {
            c.send(++count);
            if (count % 16 == 0) ramie::yield();  // thieves find it
          }
        });
      }
      in.join();
    }
    c.close();
    out.join();
    long expected = 0, got = 0;
    for (const long count : sent) expected += count * (count + 1) / 2;
    for (auto& t : sums) got += t.get();
    EXPECT(found, got == expected);
  });
  CHECK(found.wrong() == "");
}

}  // namespace conformance_withdrawal
