// SPDX-License-Identifier: BSL-1.0
// Whole programs on the whole runtime: two workers, and every atomic operation, lock and park of theirs is a point
// where somebody else may go on. Sequentially consistent: there are too many atomics for old values.
#include <ramie/blocking.hpp>
#include <ramie/cancel.hpp>
#include <ramie/channel.hpp>
#include <ramie/clock.hpp>
#include <ramie/gather.hpp>
#include <ramie/nursery.hpp>
#include <ramie/oneshot.hpp>
#include <ramie/runtime.hpp>
#include <ramie/select.hpp>
#include <ramie/testing.hpp>
#include <ramie/this_fiber.hpp>
#include <ramie/timeout.hpp>

#include <ramie/platform/thread.hpp>
#include <ramie/runtime/current.hpp>

#include "scenarios.hpp"

namespace ramie::runtime_internal {
class proxy_fiber;
extern constinit thread_local const void* helper_of;
extern constinit thread_local proxy_fiber* thread_proxy;
}  // namespace ramie::runtime_internal

namespace explore {

namespace {

using namespace std::chrono_literals;

// Runs `body` as the root fiber of a runtime.
class program final : public scenario {
 public:
  enum class mood : std::uint8_t { calm, chaos, self_advancing, impatient, many_threads };
  program(void (*body)(), unsigned workers, mood m) : body_(body), workers_(workers), mood_(m) {}
  std::vector<std::function<void()>> threads() override {
    return {[this] { run_it(); }};
  }
  void check() override { require(ended_, "the program did not end"); }

 private:
  void run_it() {
    ramie::options o;
    o.workers = workers_;
    o.elastic = false;
    o.root_stack_size = 64 * 1024;
    o.clock = mood_ == mood::self_advancing ? &virtual_ : &clock_;
    o.max_blocking_threads = mood_ == mood::many_threads ? 3 : 1;
    if (mood_ == mood::impatient) o.blocking_idle_time = 0ns;  // threads leave as soon as they are idle
    the_clock = &clock_;
    if (mood_ == mood::chaos) o.chaos = ramie::chaos_mode{7};
    ramie::runtime here(o);
    here.run(body_);
    if (mood_ == mood::many_threads) {
      require(here.stats().blocking.peak == 1, "a second thread was started for a call that the first was free for");
      require(here.stats().blocking.spins != 0, "a thread with a processor of its own did not wait awake for its next call");
    }
    ended_ = true;
  }

 public:
  inline static ramie::manual_clock* the_clock = nullptr;

 private:
  void (*const body_)();
  const unsigned workers_;
  const mood mood_;
  ramie::manual_clock clock_;
  ramie::testing::virtual_clock virtual_;
  bool ended_ = false;
};

void spawn_and_join() {
  ramie::nursery n;
  auto a = n.spawn([] { return 1; });
  auto b = n.spawn([] {
    ramie::yield();
    return 2;
  });
  n.join();
  require(a.get() + b.get() == 3, "a result is wrong");
}

void nested_join() {
  ramie::nursery n;
  int sum = 0;
  auto a = n.spawn([] {
    ramie::nursery inner;
    auto x = inner.spawn([] { return 1; });
    inner.join();
    return x.get();
  });
  sum += a.get();
  n.join();
  require(sum == 1, "a result is wrong");
}

// The join finds a task that is none of its nursery's, as the last of its own ends on another worker.
void join_finds_a_stranger() {
  ramie::nursery outer;
  bool ran = false;
  {
    ramie::nursery n;
    n.spawn([&] {
      n.spawn([] {});
      outer.spawn([&] { ran = true; });
    });
    n.join();
  }
  outer.join();
  require(ran, "a task is lost");
}

void rendezvous() {
  ramie::channel<int> c(0);
  ramie::nursery n;
  n.spawn([c]() mutable {
    require(c.send(7), "refused");
    c.close();
  });
  int got = 0;
  for (int v : c) got += v;
  n.join();
  require(got == 7, "an element is lost or doubled");
}

void close_and_cancel() {
  ramie::channel<int> c(1);
  ramie::nursery n;
  n.spawn([c]() mutable { (void)(c.send(1) && c.send(2)); });
  n.spawn([c]() mutable { c.close(); });
  int got = 0, expected = 1;
  while (auto v = c.recv()) {
    require(*v == expected++, "out of order");
    ++got;
  }
  n.join();
  require(got <= 2, "an element came twice");
}

void cancel_a_parked_one() {
  ramie::channel<int> never(0);
  bool went_on = false;
  ramie::nursery n;
  n.spawn([never, &went_on]() mutable {
    (void)never.recv();
    went_on = true;
  });
  n.spawn([&n] { n.cancel(); });
  n.join();
  require(!went_on, "a cancelled wait went on");
}

void select_two() {
  ramie::channel<int> a(0), b(0);
  ramie::nursery n;
  n.spawn([a]() mutable { (void)a.send(1); });
  n.spawn([b]() mutable { (void)b.send(2); });
  int sum = 0;
  for (int i = 0; i < 2; ++i) {
    ramie::select(ramie::on_recv(a, [&](std::optional<int> v) { sum += v.value_or(100); }),
                  ramie::on_recv(b, [&](std::optional<int> v) { sum += v.value_or(100); }));
  }
  n.join();
  require(sum == 3, "a select lost or doubled an element");
}

void timeout_meets_send() {
  ramie::channel<int> c(0);
  ramie::nursery n;
  bool sent = false;
  const auto deadline = ramie::now() + 1ms;
  n.spawn([=, &sent]() mutable { sent = c.send_until(1, deadline) == ramie::channel_status::ok; });
  n.spawn([] { program::the_clock->advance(2ms); });
  const auto got = c.recv_until(deadline);
  n.join();
  require(sent == static_cast<bool>(got), "sent and received do not agree");
}

// A plain thread meets a fiber: the thread's proxy parks on a futex.
void thread_meets_fiber() {
  ramie::channel<int> c(0);
  ramie::platform::thread outside([c]() mutable { require(c.send(3), "refused"); });
  const auto got = c.recv();
  require(got.has_value() && *got == 3, "the element is lost");
  outside.join();
}

void require_failure(ramie::nursery& n) {
  int caught = 0;
  try {
    n.join();
  } catch (int v) {
    caught = v;
  }
  require(caught == 42, "the failure did not arrive");
}

void failing_child() {
  ramie::channel<int> never(0);
  ramie::nursery n;
  n.spawn([never]() mutable { (void)never.recv(); });
  n.spawn([] { throw 42; });
  require_failure(n);
}

// A fiber that never parks is cancelled all the same, in a nursery inside the one that fails.
void failing_beside_a_yielder() {
  ramie::nursery n;
  n.spawn([] {
    ramie::nursery inner;
    inner.spawn([] { ramie::yield(); });
    for (;;) ramie::yield();
  });
  n.spawn([] { throw 42; });
  require_failure(n);
}

void last_sender_goes() {
  auto [tx, rx] = ramie::make_channel<int>(1);
  ramie::nursery n;
  n.spawn([tx = tx]() mutable { (void)tx.send(1); });
  n.spawn([tx = std::move(tx)]() mutable { (void)tx.send(2); });
  int sum = 0;
  while (auto v = rx.recv()) sum += *v;
  n.join();
  require(sum == 3, "an element is lost, or the channel closed too early");
}

void race_of_two() {
  const int won = ramie::race([] { return 1; },
                              [] {
                                ramie::yield();
                                return 2;
                              });
  require(won == 1 || won == 2, "nobody won");
}

void oneshot_meets_drop() {
  auto [tx, rx] = ramie::make_oneshot<int>();
  ramie::nursery n;
  n.spawn([tx = std::move(tx)]() mutable { (void)tx.send(5); });
  n.spawn([] { ramie::yield(); });
  const auto got = rx.recv();
  n.join();
  require(got.has_value() && *got == 5, "the value is lost");
}

// Fibers that block their workers: every entry that is queued needs a worker of its own, soon. Whoever relied on a
// searcher that found something else must be looked after.
void everybody_is_needed() {
  static ramie::platform::atomic<bool> done{false};
  done.store(false);
  const auto block = [] {
    while (!done.load()) ramie::platform::yield_thread();
  };
  ramie::nursery n;
  n.spawn(block);
  n.spawn([] { done.store(true); });
  block();
  n.join();
}

// Nobody moves the clock: it moves by itself when all wait, to each deadline in turn.
void time_passes_by_itself() {
  ramie::channel<int> never(0);
  ramie::nursery n;
  bool early = false;
  n.spawn([never, &early]() mutable { early = static_cast<bool>(never.recv_for(2ms)); });
  early = static_cast<bool>(never.recv_for(1ms)) || early;
  n.join();
  require(!early, "something was received from nobody");
}

void waits_until_all_blocked() {
  ramie::channel<int> c(0);
  ramie::nursery n;
  bool waiting = false;
  n.spawn([c, &waiting]() mutable {
    waiting = true;
    (void)c.recv();
  });
  ramie::testing::wait_all_blocked();
  require(waiting, "a fiber was not blocked: it had not even begun");
  require(c.send(1), "refused");
  n.join();
}

// More calls than threads: one is in line, or finds a thread that is idle, or one that is just leaving.
void blocking_calls() {
  ramie::nursery n;
  auto a = n.spawn([] { return ramie::blocking([] { return 1; }); });
  const int two = ramie::blocking([] { return 1; }) + ramie::blocking([] { return 1; });
  n.join();
  require(a.get() + two == 3, "a result is wrong");
}

// A thread is free for the next call before the fiber hears that the last one has ended.
void calls_one_after_the_other() {
  for (int i = 0; i < 3; ++i) ramie::blocking([] {});
}

template <bool Detachable>
void cancel_meets_blocking_call() {
  static ramie::platform::atomic<int> begun{0}, ended{0};
  begun.store(0);
  ended.store(0);
  ramie::nursery n;
  n.spawn([] {
    const auto call = [] {
      begun.fetch_add(1);
      ended.fetch_add(1);
    };
    Detachable ? ramie::blocking(ramie::detach_on_cancel, call) : ramie::blocking(call);
  });
  n.spawn([&n] { n.cancel(); });
  n.join();
  require(Detachable || begun.load() == ended.load(), "the fiber did not wait for the end of its call");
}

entry on(const char* name, void (*body)(), unsigned workers, program::mood m = program::mood::calm,
         std::uint64_t most = 4'000, unsigned preemptions = 2) {
  return {name, [body, workers, m] { return std::make_unique<program>(body, workers, m); }, preemptions, 0, 0, most};
}

}  // namespace

list all_scenarios() {
  static const bool once = [] {
    carry(reinterpret_cast<void**>(&ramie_this_worker_local));
    carry(reinterpret_cast<void**>(&ramie_this_worker_local_or_none));
    carry(reinterpret_cast<void**>(&ramie::runtime_internal::thread_proxy));
    carry(const_cast<void**>(&ramie::runtime_internal::helper_of));
    return true;
  }();
  (void)once;
  list all{
      on("spawn_and_join", spawn_and_join, 2),
      on("nested_join", nested_join, 2),
      on("join_finds_a_stranger", join_finds_a_stranger, 2, program::mood::calm, 20'000),
      on("rendezvous", rendezvous, 2),
      on("close_and_cancel", close_and_cancel, 2),
      on("cancel_a_parked_one", cancel_a_parked_one, 2),
      on("select_two", select_two, 2),
      on("timeout_meets_send", timeout_meets_send, 2),
      on("thread_meets_fiber", thread_meets_fiber, 1),
      on("failing_child", failing_child, 2),
      on("failing_beside_a_yielder", failing_beside_a_yielder, 2),
      on("last_sender_goes", last_sender_goes, 2),
      on("race_of_two", race_of_two, 2),
      on("oneshot_meets_drop", oneshot_meets_drop, 2),
      on("handle_dropped_as_its_nursery_ends", handle_dropped_as_its_nursery_ends, 1),
      on("handle_dropped_as_its_task_ends", handle_dropped_as_its_task_ends, 1),
      on("task_cancelled_as_it_ends", task_cancelled_as_it_ends, 1),
      on("task_cancelled_as_it_parks", task_cancelled_as_it_parks, 1),
      on("block_used_again_while_its_end_is_told", block_used_again_while_its_end_is_told, 2, program::mood::calm, 500),
      on("task_cancelled_as_it_starts", task_cancelled_as_it_starts, 1),
      on("task_cancelled_as_a_join_starts_it", task_cancelled_as_a_join_starts_it, 1),
      on("task_cancelled_as_its_lent_frame_goes_on", task_cancelled_as_its_lent_frame_goes_on, 1),
      on("straggler_starts_as_it_is_named", straggler_starts_as_it_is_named, 2, program::mood::calm, 20'000, 1),
      on("fork_is_taken_as_its_caller_comes_back", fork_is_taken_as_its_caller_comes_back, 2, program::mood::calm, 20'000),
      on("task_cancelled_as_its_fork_starts", task_cancelled_as_its_fork_starts, 2, program::mood::calm, 20'000),
      on("loop_is_divided", loop_is_divided, 2, program::mood::calm, 20'000),
      on("everybody_is_needed", everybody_is_needed, 3),
      on("time_passes_by_itself", time_passes_by_itself, 2, program::mood::self_advancing),
      on("waits_until_all_blocked", waits_until_all_blocked, 2),
      on("blocking_calls", blocking_calls, 2),
      on("blocking_calls_of_the_impatient", blocking_calls, 2, program::mood::impatient),
      on("calls_one_after_the_other", calls_one_after_the_other, 1, program::mood::many_threads),
      on("cancel_meets_blocking_call", cancel_meets_blocking_call<false>, 2),
      on("cancel_meets_detachable_call", cancel_meets_blocking_call<true>, 2, program::mood::impatient),
      on("rendezvous_in_chaos", rendezvous, 2, program::mood::chaos),
      on("failing_beside_a_yielder_in_chaos", failing_beside_a_yielder, 2, program::mood::chaos),
  };
  for (const list& more : {timer_scenarios(), keeper_scenarios()}) all.insert(all.end(), more.begin(), more.end());
  return all;
}

}  // namespace explore
