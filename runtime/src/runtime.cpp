// SPDX-License-Identifier: BSL-1.0
#include <ramie/runtime.hpp>

#include <unistd.h>

#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>

#include <ramie/cancel.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/overflow.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/gate.hpp>

#include "sched/helper_thread.hpp"
#include "sched/runner.hpp"
#include "sched/scheduler.hpp"
#include "task/extras.hpp"

namespace ramie::runtime_internal {

namespace {

// Whether `address` is in the guard of the stack that the worker runs on, also if the stack is a user's.
bool in_guard_of(const worker* w, const void* address) noexcept {
  const auto* const active = w != nullptr ? runner::active_stack_or_null(*w) : nullptr;
  if (active == nullptr || active->low == nullptr) return false;
  const auto* const at = static_cast<const char*>(address);
  return at < active->low && at >= active->low - platform::page_size;
}

// Inside the SIGSEGV handler, on the thread that overflowed: its worker knows whose stack it was.
bool report_overflow(const void* address, std::size_t promised) noexcept {
  char text[512];
  const worker* const w = this_worker();
  const fiber* const f = current_fiber();
  const bool own = in_guard_of(w, address);
  if (!own && promised == 0) return false;
  if (own) promised = platform::promised_bytes(runner::active_stack(*w).size_class);
  const int length =
      !own ? std::snprintf(text, sizeof text,
                           "ramie: fatal: stack overflow on a stack of ramie::stack_allocator, of %zu KiB, or a stray "
                           "pointer into its guard. Make the allocator with more bytes.\n",
                           promised / 1024)
      : f == nullptr
          ? std::snprintf(text, sizeof text, "ramie: fatal: stack overflow outside a fiber.\n")
          : std::snprintf(
                text, sizeof text,
                "ramie: fatal: stack overflow in fiber #%u%s%s%s, spawned at %s:%u in %s, whose stack is %zu KiB. "
                "Give it more: options.stack_size, or the stack size of its spawn.\n",
                f->number, *name_in(f->record) != 0 ? " '" : "", name_in(f->record),
                *name_in(f->record) != 0 ? "'" : "", f->site.get().file_name(),
                static_cast<unsigned>(f->site.get().line()), f->site.get().function_name(), promised / 1024);
  const auto size = static_cast<std::size_t>(length) < sizeof text ? static_cast<std::size_t>(length) : sizeof text - 1;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size);
  return true;
}

// One call of run(): lives on the caller's stack until the gate opens.
struct root_call : fiber_record {
  void (*call)(void*);
  void* data;
  std::exception_ptr failure;
  gate ended;

  root_call(void (*f)(void*), void* argument) : call(f), data(argument) {}

  [[nodiscard]] const cancel_scope& home() const noexcept { return home_of(*frame()); }

  static fiber_end run(fiber_record& self) noexcept {
    auto& root = static_cast<root_call&>(self);
    try {
      root.call(root.data);
      return fiber_end::done;
    } catch (...) {
      root.failure = current_failure(*root.frame());
      if (root.failure != nullptr) return fiber_end::done;
      root.failure = std::current_exception();
      return fiber_end::cancelled;
    }
  }
  static void discard(fiber_record& self, discard_cause why) noexcept {
    auto& root = static_cast<root_call&>(self);
    try {
      if (why == discard_cause::no_stack) throw stack_exhausted();
      throw root.home().ending(nullptr, nullptr);
    } catch (...) {
      root.failure = std::current_exception();
    }
  }
  static void retire(fiber_record& self, cancel_scope&, const cancel_scope*) noexcept {
    static_cast<root_call&>(self).ended.open();
  }

  static constexpr fiber_ops ops{run, discard, retire};
};

const wait_reason waits_for_root{"run"};

// The destructor would wait for the very fiber, or call, that it runs in.
void must_not_run_on(const scheduler& it) noexcept {
  constexpr const char* advice =
      "Destroy it outside, after run() has returned: keep it in main() or on the stack of whoever calls run(). "
      "std::exit() destroys static objects where it is called: in a fiber return from the root function instead, or "
      "end the program by std::quick_exit() or std::_Exit().";
  if (it.blocking.runs_caller()) {
    platform::fatal("a runtime is destroyed in a call of blocking() of its own. It would wait for itself. %s", advice);
  }
  if (helper_of == &it.pool.monitor() || helper_of == &it.deadlines) {
    platform::fatal(
        "a runtime is destroyed in a callback of its own: a report handler, or that of a stop token. It would "
        "wait for itself. %s",
        advice);
  }
  const worker* const w = this_worker();
  if (w == nullptr || &w->sched != &it) return;
  const fiber* const f = w->current.get();
  platform::fatal("a runtime is destroyed by %s, one of its own fibers. It would wait for itself. %s",
                  f != nullptr ? describe(*f).c_str() : "its own scheduler", advice);
}

}  // namespace

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

unsigned default_workers() noexcept {
  const unsigned cpus = platform::usable_cpus();
  return cpus < runtime_internal::max_configured_workers ? cpus : runtime_internal::max_configured_workers;
}

stack_exhausted::stack_exhausted()
    : std::runtime_error(
          "ramie: stack_exhausted: no stack for a fiber: the limit of memory, address space or mappings is reached, or "
          "the allocator of options.stacks has none. Raise it (vm.max_map_count, ulimit -v), or run fewer fibers at "
          "once.") {}

worker_stats& worker_stats::operator+=(const worker_stats& o) noexcept {
  for (const auto each : runtime_internal::every_worker_count<std::uint64_t>) this->*each += o.*each;
  return *this;
}

// How many calls of run() are under way.
struct runtime::roots {
  platform::mutex mutex;
  platform::condition_variable none;
  unsigned count = 0;

  void enter() {
    std::lock_guard hold(mutex);
    ++count;
  }
  void leave() noexcept {
    std::lock_guard hold(mutex);
    if (--count == 0) none.notify_all();
  }
  void wait_for_none() {
    std::unique_lock hold(mutex);
    none.wait(hold, [this] { return count == 0; });
  }
};

runtime::runtime(const options& wanted) : runtime(wanted, nullptr) {}

runtime::runtime(const options& wanted, runtime_internal::scheduling_policy* by)
    : scheduler_(std::make_unique<runtime_internal::scheduler>(wanted, by)), roots_(std::make_unique<roots>()) {
  platform::watch_for_overflow(runtime_internal::report_overflow);
}

runtime::~runtime() {
  runtime_internal::must_not_run_on(*scheduler_);
  shutdown();
  roots_->wait_for_none();
}

void runtime::run_root(void (*call)(void*), void* data, source_location site) {
  if (runtime_internal::this_worker() != nullptr) {
    throw usage_error(
        "ramie: runtime::run: called inside a fiber. Spawn into a nursery instead, or call the function directly.");
  }
  (void)runtime_internal::self();  // if this thread's proxy can't be had, say so before there is a fiber
  runtime_internal::root_call root(call, data);
  const auto stack = platform::promised_bytes(scheduler_->root_class);
  struct presence {
    roots& all;
    explicit presence(roots& r) : all(r) { all.enter(); }
    ~presence() { all.leave(); }
  } const here(*roots_);
  runtime_internal::spawn(runtime_internal::root_call::ops, root, scheduler_->root_scope, stack, site);
  root.ended.wait(runtime_internal::waits_for_root);
  if (root.failure) std::rethrow_exception(std::move(root.failure));
}

void runtime::shutdown(source_location where) noexcept {
  cancel_reason why{cancel_kind::shutdown, {}, where};
  runtime_internal::sign_as_caller(why);
  scheduler_->root_scope.cancel(std::move(why));
}

runtime_stats runtime::stats() const {
  return scheduler_->stats();
}

}  // namespace ramie::inline v0
