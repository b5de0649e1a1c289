// SPDX-License-Identifier: BSL-1.0
// Who runs first when more deadlines have come than a worker can serve: U12. By hand: no worker has a thread.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <list>
#include <string>
#include <vector>

#include <ramie/platform/clock.hpp>
#include <ramie/ramie.hpp>
#include <support/finally.hpp>
#include <support/threadless_runtime.hpp>
#include <support/test.hpp>

namespace conformance_due_order {

using namespace ramie::runtime_internal;
using namespace std::chrono_literals;
using ramie::platform::time_point;
using test::threadless_runtime;

// A worker of a runtime without threads; the calling thread is that worker.
class overloaded_worker : threadless_runtime {
 public:
  explicit overloaded_worker(std::size_t most) {
    sched().queues.reserve(most + overflow_batch);
    test::live(sched()).store(1);
    set_this_worker(&w());
    w().dispatch.pacing.restart(0, now_);
    dispatcher::keep_pace(w());
  }
  ~overloaded_worker() {
    take_all();
    for (wake_up& entry : deadlines_) sched().deadlines.remove(entry);
    set_this_worker(nullptr);
  }

  fiber& runnable() {
    fiber& f = fibers_.emplace_back();
    f.word.init_to_runnable(0);
    return f;
  }
  void queue(std::size_t count) {
    for (; count > 0; --count) push(runnable());
  }
  void inject(std::size_t count) {
    for (; count > 0; --count) test::injection(sched()).put(as_entry(runnable()));
  }
  // So many fibers sleep, and their time came a while ago, 100 us after the other.
  void sleep(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      fiber& f = runnable();
      f.home = &sched().root_scope;
      f.word.runnable_to_running();
      const auto ticket = f.wait_ticket.load() + 1;
      f.wait_ticket.store(ticket);
      f.word.running_to_parking(static_cast<std::uint16_t>(ticket));
      (void)f.word.commit_park();
      const auto when = now_ - 1s + i * 100us;
      sched().deadlines.set(deadlines_.emplace_back(when), waker(&f, ticket), when - 100ms);
      sleepers_.push_back(&f);
    }
  }
  [[nodiscard]] bool sleeps(const fiber* f) const { return std::ranges::find(sleepers_, f) != sleepers_.end(); }
  [[nodiscard]] std::size_t fired() const {
    return static_cast<std::size_t>(std::ranges::count_if(deadlines_, [](const wake_up& d) { return d.fired.load(); }));
  }

  fiber* poll() { return dispatcher::next_local(w()); }
  // What runs, in that order: 's' for one that has slept, 'o' for others.
  std::string take_all() {
    std::string order;
    while (const fiber* const f = poll()) order += sleeps(f) ? 's' : 'o';
    return order;
  }
  // The next poll ends a tick, at which the worker looks at the time.
  void end_tick() { w().dispatch.pacing.restart(w().count.polls.get() + 1 - budget_per_tick, now_); }

  using threadless_runtime::push;
  using threadless_runtime::sched;
  using threadless_runtime::w;

 private:
  const time_point now_ = ramie::platform::steady_clock::instance().now();
  std::deque<fiber> fibers_;
  std::list<wake_up> deadlines_;
  std::vector<const fiber*> sleepers_;
};

TEST_CASE("no more deadlines are fired than the ring has room for", "[conformance][time]") {
  overloaded_worker b(1'000);
  b.queue(ring_capacity - 50 - ring_capacity / 8);
  b.sleep(100);
  b.end_tick();
  (void)b.poll();
  CHECK(b.fired() == 50);
  CHECK(b.w().count.overflows.get() == 0);
  b.end_tick();  // one poll later
  (void)b.poll();
  CHECK(b.fired() == 50);
  CHECK(b.take_all().size() == ring_capacity - ring_capacity / 8 + 50 - 2);
  CHECK(b.fired() == 100);
  CHECK(b.w().count.overflows.get() == 0);
}

TEST_CASE("fibers that keep the ring full by yielding do not hold up who is due", "[conformance][time]") {
  overloaded_worker b(5'000);
  b.queue(ring_capacity);
  b.sleep(300);
  std::size_t run = 0;
  for (std::uint32_t polls = 0; polls < 4 * ring_capacity; ++polls) {
    fiber* const f = b.poll();
    b.sleeps(f) ? (void)++run : run_queues::push_yielded(b.w(), *f);
  }
  CHECK(run + b.w().count.overflows.get() >= 300);  // a ring that sheds sheds the newcomer, too (D5)
  CHECK(b.w().count.overflows.get() <= 3);
}

TEST_CASE("what is due and found no room goes before the injection queue, and then by turns", "[conformance][time]") {
  overloaded_worker b(6'000);
  b.inject(500);
  b.sleep(4'000);
  b.end_tick();
  const auto order = b.take_all();
  CHECK(std::ranges::count(order, 's') == 4'000);
  CHECK(b.w().count.overflows.get() == 0);
  const auto others_between = [&](std::size_t first, std::size_t last) {
    return std::count(order.begin() + static_cast<long>(first), order.begin() + static_cast<long>(last), 'o');
  };
  const std::size_t last = order.rfind('s');
  const auto interval = b.w().dispatch.pacing.interval();
  const auto turns = [interval](std::size_t polls) { return static_cast<std::ptrdiff_t>(polls / interval + 1); };
  CHECK(others_between(0, overflow_batch) <= turns(overflow_batch));
  CHECK(others_between(0, last) <= turns(last) + 2 * max_injection_batch);
  CHECK(others_between(0, last) >= turns(last) + max_injection_batch / 2);
}

TEST_CASE("of several shards the one with the earliest deadline is first", "[conformance][time]") {
  threadless_runtime s(3);
  timekeeper& keeper = s.sched().deadlines;
  const auto past = ramie::platform::steady_clock::instance().now() - 1s;
  wake_up late(past + 2ms), early(past), between(past + 1ms);
  const auto add = [&](std::size_t of, wake_up& entry) {
    set_this_worker(&s.w(of));
    keeper.set(entry, {}, entry.when - 1ms);
    set_this_worker(nullptr);
  };
  add(0, late);
  add(1, early);
  add(2, between);
  CHECK(keeper.fire_due(past + 1s, 1));
  CHECK((early.fired.load() && !between.fired.load() && !late.fired.load()));
  CHECK(keeper.fire_due(past + 1s, 1));
  CHECK((between.fired.load() && !late.fired.load()));
  CHECK_FALSE(keeper.fire_due(past + 1s, 2));
  CHECK(late.fired.load());
}

}  // namespace conformance_due_order
