// SPDX-License-Identifier: BSL-1.0
// Computations that divide themselves: calls that other workers make if they have nothing else to do, and the caller
// itself if not. Such a call costs a few nanoseconds more than a plain one.
//
//   parallel_invoke(f, g, …)   calls each of the functions once
//   parallel_for(count, f)     calls f(0), f(1) … f(count - 1)
//
// Both return when all calls have ended, so nothing is left behind. Who makes a call is not specified: the calling fiber,
// or a fiber of its own on another worker, which inherits fiber-local values as a spawned one does. That one has a stack of
// options::stack_size, however large the caller's is. A call may do whatever a fiber may, also wait: the others are still
// there for any worker. What cancels the caller cancels its calls.
//
// A call that throws does not interrupt those that are under way. No call is begun after the caller has seen the failure;
// when the last one under way has ended, the failure is rethrown (one of them: others are reported, report.hpp). For
// functions that wait for each other, and are to be cancelled for each other's failures, there are join_all and nurseries.
//
// A scope that was opened outside must not be left inside of a call: in f, no join of the caller's nursery.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <iterator>
#include <memory>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ramie/detail/call_site.hpp>
#include <ramie/detail/fork.hpp>
#include <ramie/nursery.hpp>
#include <ramie/source_location.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

// One of several functions, which stays where it is.
template <class F>
struct forked_call final : fork_record {
  explicit forked_call(F& what) noexcept
      : fork_record([](fork_record& self) { std::invoke(static_cast<forked_call&>(self).f); }), f(what) {}
  F& f;
};

// The functions as children of a nursery, where forks would not do (fork_push::not_plain). Each notes how it has ended.
void run_fork_as_child(fork_record& part);
// Of functions that have ended: rethrows the first failure, reports the others. If the caller unwinds for another reason
// all are reported.
class fork_failures {
 public:
  fork_failures() noexcept = default;
  ~fork_failures();
  fork_failures(const fork_failures&) = delete;
  fork_failures& operator=(const fork_failures&) = delete;
  void add(fork_record& part) noexcept;
  void rethrow();

 private:
  std::exception_ptr first_;
};

template <class... F>
void invoke_as_children(source_location site, F&... f) {
  std::tuple<forked_call<F>...> parts{f...};
  std::apply(
      [site](auto&... part) {
        fork_failures failures;
        try {
          with_nursery([&](nursery& n) { (n.spawn([&part] { run_fork_as_child(part); }, site), ...); }, site);
        } catch (...) {
          (failures.add(part), ...);
          throw;
        }
        (failures.add(part), ...);
        failures.rethrow();
      },
      parts);
}

inline constexpr const char* invoke_name = "parallel_invoke";

// The last one is called, the others are offered before that; false: nothing has been called, they can't be forks.
template <class F>
bool invoke_forked(source_location, F& f) {
  std::invoke(f);
  return true;
}
template <class F, class... Rest>
bool invoke_forked(source_location site, F& f, Rest&... rest) {
  forked_call<F> part(f);
  const fork_push pushed = push_fork(part, site, invoke_name);
  if (pushed == fork_push::not_plain) [[unlikely]]
    return false;
  try {
    if (!invoke_forked(site, rest...)) [[unlikely]]
      invoke_as_children(site, rest...);
  } catch (...) {
    if (pushed == fork_push::pushed) (void)drop_fork(part);
    throw;
  }
  if (pushed == fork_push::alone || take_fork(part)) std::invoke(f);
  return true;
}

// After `call` has said false: once more, in a scope of the caller's own. False: again nothing has been called.
template <class Call>
bool call_in_reach(source_location site, Call call) {
  bool called = false;
  auto note = [&] { called = call(); };
  const auto call_noted = [](void* f) { (*static_cast<decltype(note)*>(f))(); };
  return runtime_internal::call_in_reach(site, call_noted, &note) && called;
}

template <class... F>
void invoke_otherwise(source_location site, F&... f) {
  if (!call_in_reach(site, [&] { return invoke_forked(site, f...); })) invoke_as_children(site, f...);
}

// A loop that is divided among workers: what is called, and for which indices (parallel.cpp).
class loop_part;
// The calling fiber's next index, or no_index: there is none left. Throws `cancelled`.
inline constexpr std::size_t no_index = ~std::size_t{0};
[[nodiscard]] std::size_t next_index(loop_part& part);
struct loop_body {
  void* f;
  void (*call_all)(void* f, loop_part& part);       // for every index that the part gives
  void (*call_one)(void* f, std::size_t index);
  source_location site;
};
void run_loop(std::size_t count, const loop_body& body);

}  // namespace ramie::nursery_internal

namespace ramie::inline v0 {

namespace function_objects {

struct parallel_for {
  // Calls f(i) for each i below `count`, in any order, with f as it is: calls share it. A cancellation point, and one
  // again after every few calls. Fibers only: throws usage_error on a plain thread, `cancelled`, what a call throws.
  template <class F>
  requires std::invocable<F&, std::size_t>
  void operator()(std::size_t count, F&& f, source_location site = source_location::current()) const {
    auto* what = std::addressof(f);  // perhaps a function, which no void* can point to
    using place = decltype(what)*;
    nursery_internal::run_loop(
        count, {&what,
                [](void* body, nursery_internal::loop_part& part) {
                  auto& call = **static_cast<place>(body);
                  for (std::size_t i; (i = nursery_internal::next_index(part)) != nursery_internal::no_index;)
                    (void)std::invoke(call, i);
                },
                [](void* body, std::size_t i) { (void)std::invoke(**static_cast<place>(body), i); }, site});
  }
  // Likewise f(element) for each element of a range.
  template <std::ranges::random_access_range Range, class F>
  requires std::invocable<F&, std::ranges::range_reference_t<Range>>
  void operator()(Range&& all, F&& f, source_location site = source_location::current()) const {
    const auto first = std::ranges::begin(all);
    using distance = std::ranges::range_difference_t<Range>;
    (*this)(static_cast<std::size_t>(std::ranges::distance(all)),
            [&](std::size_t i) { (void)std::invoke(f, first[static_cast<distance>(i)]); }, site);
  }
};

struct parallel_invoke : nursery_internal::calls_with_site<parallel_invoke> {
  template <class Range>
  void call_range_at(source_location site, Range& all) const {
    static_assert(std::ranges::random_access_range<Range>, "ramie: parallel_invoke takes functions, or a range of them "
                                                           "with random access: a vector, say.");
    parallel_for()(all, [](auto& f) { (void)std::invoke(f); }, site);
  }
  template <class... F>
  void call_at(source_location site, F&... f) const {
    if constexpr (sizeof...(F) == 1) runtime_internal::begin_calls(nursery_internal::invoke_name);
    if (!nursery_internal::invoke_forked(site, f...)) [[unlikely]]
      nursery_internal::invoke_otherwise(site, f...);
  }
};

}  // namespace function_objects

// Calls each of up to eight functions, or of a range of them, once; what they return is dropped. The functions stay where
// they are. A cancellation point. Fibers only: throws usage_error on a plain thread, `cancelled`, what a function throws.
inline constexpr function_objects::parallel_invoke parallel_invoke{};

// Calls f(0) … f(count - 1), or f for each element of a range with random access.
inline constexpr function_objects::parallel_for parallel_for{};

}  // namespace ramie::inline v0
