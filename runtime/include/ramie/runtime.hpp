// SPDX-License-Identifier: BSL-1.0
// The runtime: where fibers run.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <ramie/source_location.hpp>
#include <type_traits>
#include <utility>

#include <ramie/detail/callable.hpp>
#include <ramie/error.hpp>
#include <ramie/options.hpp>
#include <ramie/stats.hpp>
#include <ramie/version.hpp>

namespace ramie::runtime_internal {
class scheduler;
class scheduling_policy;
struct runtime_access;
}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// The workers, and all that belongs to them. Fibers of several runtimes may use the same channels, locks and sockets.
class runtime {
 public:
  // Starts no thread yet. Throws usage_error for options that can't work, std::bad_alloc, and what the allocator of
  // `options.stacks` throws, which is tried once.
  explicit runtime(const options& wanted = {});

  // Cancels what still runs, waits until it has unwound, then ends the workers. Any thread, and fibers of other
  // runtimes, whose worker it blocks meanwhile. By one of its own fibers, or in a call of blocking() of theirs, it ends
  // the program with a message: it would wait for itself. (std::exit() in a fiber destroys a static runtime there.)
  ~runtime();
  runtime(const runtime&) = delete;
  runtime& operator=(const runtime&) = delete;

  // Runs f() as a fiber and returns what it returns, or throws what it throws (`cancelled` after
  // shutdown()). Blocks the calling thread meanwhile; several threads may call it at once. Throws
  // usage_error inside a fiber, std::system_error if no worker can be started, stack_exhausted if
  // there is no memory for the fiber's stack, std::bad_alloc. Called by plain threads, which can't be cancelled: so it
  // is not a cancellation point.
  template <class F>
  auto run(F&& f, source_location site = source_location::current()) -> ::ramie::runtime_internal::call_keeps_t<F&> {
    using result = ::ramie::runtime_internal::call_keeps_t<F&>;
    if constexpr (!std::is_invocable_v<F&>) {
      static_assert(::ramie::runtime_internal::always_false<F>,
                    "ramie: run(f) calls f() without arguments, and f can't be called like that.");
    } else if constexpr (std::is_void_v<result>) {
      auto call = [&f] { std::invoke(f); };
      run_root([](void* c) { (*static_cast<decltype(call)*>(c))(); }, &call, site);
    } else if constexpr (std::is_reference_v<result>) {
      return *run([&f] { return std::addressof(std::invoke(f)); }, site);
    } else {
      std::optional<result> value;
      auto store = [&] { value.emplace(std::invoke(f)); };
      run_root([](void* call) { (*static_cast<decltype(store)*>(call))(); }, &store, site);
      return std::move(*value);
    }
  }

  // Cancels every fiber of this runtime: each unwinds at its next cancellation point. Any thread, any
  // fiber; returns at once, and is not a cancellation point.
  void shutdown(source_location where = source_location::current()) noexcept;

  // What it has done so far (stats.hpp). Any thread or fiber, at any time. Not a cancellation point. Throws
  // std::bad_alloc.
  [[nodiscard]] runtime_stats stats() const;

 private:
  friend struct ::ramie::runtime_internal::runtime_access;

  runtime(const options& wanted, ::ramie::runtime_internal::scheduling_policy* by);
  void run_root(void (*call)(void*), void* data, source_location site);

  std::unique_ptr<::ramie::runtime_internal::scheduler> scheduler_;
  struct roots;
  std::unique_ptr<roots> roots_;
};

// A runtime for the length of one call, with those options or the default ones. Plain threads only: usage_error inside
// a fiber. Throws what the constructor and runtime::run throw.
template <class F>
auto run(const options& wanted, F&& f, source_location site = source_location::current())
    -> ::ramie::runtime_internal::call_keeps_t<F&> {
  runtime here(wanted);
  return here.run(f, site);
}

template <class F>
auto run(F&& f, source_location site = source_location::current()) -> ::ramie::runtime_internal::call_keeps_t<F&> {
  return run(options{}, f, site);
}

}  // namespace ramie::inline v0
