// SPDX-License-Identifier: BSL-1.0
// Random programs of fibers and threads that park, wake, yield, spawn and cancel, over seeds and worker
// counts, with an oracle: every permit passed is taken exactly once, every fiber ends exactly once.
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include <support/crew.hpp>
#include <support/test.hpp>

namespace stress {

using namespace ramie::detail;
using test::crew;

// A bag of permits. Takers may be cancelled while they wait; a permit given to one of them is not lost.
class bag final : public waitable {
 public:
  void take() {
    static const wait_reason why{"bag"};
    waiter node;
    (void)fiber_wait(*this, node, why);
    taken_.fetch_add(1, std::memory_order_relaxed);
  }
  void put() noexcept {
    fiber* partner = nullptr;
    {
      std::lock_guard hold(lock_);
      ++put_;
      if (waiter* const node = waiters_.claim_first()) {
        node->outcome = 1;
        partner = node->who;
      } else {
        ++permits_;
      }
    }
    if (partner != nullptr) complete(*partner);
  }
  bool try_complete(waiter&) override {
    std::lock_guard hold(lock_);
    return permits_ > 0 && permits_-- > 0;
  }
  bool publish(waiter& node) override {
    std::lock_guard hold(lock_);
    if (permits_ > 0) {
      --permits_;
      return false;
    }
    waiters_.add(node);
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    std::lock_guard hold(lock_);
    waiters_.remove(node);
  }
  [[nodiscard]] bool balanced() {
    std::lock_guard hold(lock_);
    return put_ == taken_.load() + permits_ && waiters_.empty();
  }

 private:
  ramie::platform::spin_lock lock_;
  long permits_ = 0;
  long put_ = 0;
  std::atomic<long> taken_{0};
  wait_list waiters_;
};

struct outcome {
  bool balanced = true;
  int ended = 0;
  int spawned = 0;
};

outcome random_program(std::uint64_t seed, unsigned workers, bool chaos) {
  ramie::options o;
  o.workers = workers;
  if (chaos) o.chaos = ramie::chaos_mode{seed};
  ramie::runtime rt(o);
  outcome result;
  std::vector<bag> bags(4);
  std::atomic<bool> stop{false};
  std::thread outside([&] {  // a plain thread joins in
    std::mt19937_64 random(seed * 31);
    while (!stop.load()) bags[random() % bags.size()].put();
  });
  rt.run([&] {
    std::mt19937_64 random(seed);
    for (int round = 0; round < 4; ++round) {
      cancel_scope scope;
      crew c(scope);
      const int fibers = test::scaled(200, 40);
      for (int i = 0; i < fibers; ++i) {
        c.spawn([&, s = random()] {
          std::mt19937_64 mine(s);
          for (int step = 0; step < 20; ++step) {
            bag& b = bags[mine() % bags.size()];
            switch (mine() % 5) {
              case 0: b.take(); break;
              case 1: b.put(); break;
              case 2: ramie::yield(); break;
              case 3: {
                ramie::shield guard;
                b.put();
                b.take();
                break;
              }
              default: c.spawn([&b] { b.put(); }); break;
            }
          }
        });
      }
      for (std::uint64_t k = random() % 50; k > 0; --k) ramie::yield();
      if (random() % 2 == 0) scope.cancel({ramie::cancel_kind::requested, {}, {}, 0});
      c.join();
      result.ended += c.ran() + c.cancelled() + c.discarded(discard_cause::cancelled);
      result.spawned += fibers;
    }
  });
  stop = true;
  outside.join();
  for (auto& b : bags) result.balanced = result.balanced && b.balanced();
  return result;
}

TEST_CASE("random programs lose no wake and no fiber", "[stress]") {
  const char* const given = std::getenv("RAMIE_STRESS_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  const int seeds = test::large() ? 200 : test::scaled(8, 2);
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(seeds); ++seed) {
    for (const unsigned workers : {1u, 2u, 4u, 8u}) {
      for (const bool chaos : {false, true}) {
        INFO("RAMIE_STRESS_SEED=" << seed << " workers " << workers << " chaos " << chaos);
        const auto got = random_program(seed, workers, chaos);
        REQUIRE(got.balanced);
        REQUIRE(got.ended >= got.spawned);
      }
    }
  }
}

}  // namespace stress
