// SPDX-License-Identifier: BSL-1.0
// Several functions at once: all of them, or the first.
//
//   join_all(f, g, …)      every result; the first failure cancels the others and is rethrown
//   try_join_all(f, g, …)  every outcome, value or exception; nobody is cancelled for another's failure
//   race(f, g, …)          the first to end wins, value or failure; the others are cancelled and awaited, and their
//                          values are dropped, their failures reported
//
// Each runs its functions as children of a nursery of its own, so nothing is left behind when it returns. All are
// cancellation points like nursery::join(), for fibers only, and throw usage_error on a plain thread.
#pragma once

#include <exception>
#include <functional>
#include <iterator>
#include <optional>
#include <ramie/detail/atomic.hpp>
#include <ramie/source_location.hpp>
#include <ranges>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <ramie/nursery.hpp>
#include <ramie/runtime.hpp>

namespace ramie::inline v0 {

// A value, or the exception thrown instead. A function that returns void has std::monostate.
template <class T>
class outcome {
 public:
  // Made by try_join_all; made by hand they throw what moving T throws.
  explicit outcome(T value) : what_(std::in_place_index<0>, std::move(value)) {}
  explicit outcome(std::exception_ptr failure) : what_(std::in_place_index<1>, std::move(failure)) {}

  // Whether there is a value. No function of an outcome waits.
  [[nodiscard]] bool has_value() const noexcept { return what_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }
  // The value, or rethrows the exception.
  [[nodiscard]] T& value() & {
    if (!has_value()) std::rethrow_exception(std::get<1>(what_));
    return std::get<0>(what_);
  }
  [[nodiscard]] const T& value() const& {
    if (!has_value()) std::rethrow_exception(std::get<1>(what_));
    return std::get<0>(what_);
  }
  [[nodiscard]] T&& value() && { return std::move(value()); }
  // The exception; null if there is a value.
  [[nodiscard]] std::exception_ptr failure() const noexcept { return has_value() ? nullptr : std::get<1>(what_); }

 private:
  std::variant<T, std::exception_ptr> what_;
};

}  // namespace ramie::inline v0

namespace ramie::nursery_internal {

using namespace runtime_internal;

// In a catch block, as a fiber: what ended the function, or null if that is a cancellation of the fiber.
[[nodiscard]] std::exception_ptr current_failure() noexcept;
// Reports a failure of the calling fiber that no caller can receive.
void report_lost_end(const std::exception_ptr& failure) noexcept;

// What a call gives, as something that can be kept: void is std::monostate, an lvalue reference a
// std::reference_wrapper.
template <class F>
struct kept {
  using raw = kept_result<std::invoke_result_t<F&>>;
  using type = std::conditional_t<
      std::is_void_v<raw>, std::monostate,
      std::conditional_t<std::is_reference_v<raw>, std::reference_wrapper<std::remove_reference_t<raw>>,
                         std::remove_cv_t<raw>>>;
};
template <class F>
using kept_t = typename kept<F>::type;

template <class F>
kept_t<F> call_and_keep(F& f) {
  if constexpr (std::is_void_v<std::invoke_result_t<F&>>) {
    std::invoke(f);
    return {};
  } else {
    return std::invoke(f);
  }
}

// What a slot holds, and what becomes of it when nobody gets the results.
struct result_of_each {
  template <class F>
  kept_t<F> operator()(F& f) const {
    return call_and_keep(f);
  }
  template <class T>
  static void abandon(const std::optional<T>&) noexcept {}
};
struct outcome_of_each {
  template <class F>
  outcome<kept_t<F>> operator()(F& f) const {
    try {
      return outcome<kept_t<F>>(call_and_keep(f));
    } catch (...) {
      auto failure = current_failure();
      if (failure == nullptr) throw;
      return outcome<kept_t<F>>(std::move(failure));
    }
  }
  template <class T>
  static void abandon(const std::optional<outcome<T>>& slot) noexcept {
    if (slot && !slot->has_value()) report_lost_end(slot->failure());
  }
};

// One child per function, results into slots that outlive them.
template <class Call, class Slot, class F>
void gather_one(nursery& n, Call& call, Slot& slot, F& f, source_location site) {
  n.spawn([&call, &slot, &f] { slot.emplace(call(f)); }, site);
}

template <std::size_t... I, class Call, class... F>
auto gather(std::index_sequence<I...>, Call call, source_location site, F&... f) {
  std::tuple<std::optional<decltype(call(f))>...> slots;
  try {
    with_nursery([&](nursery& n) { (gather_one(n, call, std::get<I>(slots), f, site), ...); }, site);
  } catch (...) {
    (Call::abandon(std::get<I>(slots)), ...);
    throw;
  }
  return std::tuple(std::move(*std::get<I>(slots))...);
}

template <class Call, class Range>
auto gather_range(Call call, source_location site, Range& all) {
  using result = decltype(call(*std::ranges::begin(all)));
  std::vector<std::optional<result>> slots(static_cast<std::size_t>(std::ranges::distance(all)));
  try {
    with_nursery(
        [&](nursery& n) {
          auto slot = slots.begin();
          for (auto& f : all) gather_one(n, call, *slot++, f, site);
        },
        site);
  } catch (...) {
    for (const auto& slot : slots) Call::abandon(slot);
    throw;
  }
  std::vector<result> results;
  results.reserve(slots.size());
  for (auto& slot : slots) results.push_back(std::move(*slot));
  return results;
}

// Who was first. Its failure is the nursery's, which cancels the others and is rethrown by the join; what it returned
// is kept here.
template <class T>
struct race_result {
  runtime_internal::atomic<bool> won{false};
  std::optional<T> first;

  template <class F>
  void run(nursery& n, F& f) {
    bool is_first = false;
    try {
      T value(call_and_keep(f));
      is_first = !won.exchange(true);
      if (is_first) first.emplace(std::move(value));
    } catch (...) {
      const auto failure = current_failure();
      if (failure == nullptr || is_first || !won.exchange(true)) throw;
      report_lost_end(failure);
    }
    if (is_first) n.cancel("the race is over");
  }
  template <class F>
  void spawn(nursery& n, F& f, source_location site) {
    n.spawn([this, &n, &f] { run(n, f); }, site);
  }
  T take_first() { return std::move(*first); }
};

// One type if all agree, else a variant of them, each once.
template <class Seen, class... Rest>
struct merge_types;
template <class... Seen>
struct merge_types<std::variant<Seen...>> {
  using type =
      std::conditional_t<sizeof...(Seen) == 1, std::tuple_element_t<0, std::tuple<Seen...>>, std::variant<Seen...>>;
};
template <class... Seen, class T, class... Rest>
struct merge_types<std::variant<Seen...>, T, Rest...>
    : std::conditional_t<(std::is_same_v<T, Seen> || ...), merge_types<std::variant<Seen...>, Rest...>,
                         merge_types<std::variant<Seen..., T>, Rest...>> {};

}  // namespace ramie::nursery_internal

namespace ramie::inline v0 {

namespace function_objects {

// Up to eight functions (detail/call_site.hpp), or a range of any number of one type. `Call` is what becomes of each.
template <class Call>
struct gather : nursery_internal::calls_with_site<gather<Call>> {
  template <class Range>
  auto call_range_at(source_location site, Range& all) const {
    return nursery_internal::gather_range(Call(), site, all);
  }
  template <class... F>
  auto call_at(source_location site, F&... f) const {
    return nursery_internal::gather(std::index_sequence_for<F...>(), Call(), site, f...);
  }
};

struct race : nursery_internal::calls_with_site<race> {
  template <class Range>
  auto call_range_at(source_location site, Range& all) const {
    using result = nursery_internal::kept_t<std::remove_reference_t<std::ranges::range_reference_t<Range>>>;
    if (std::ranges::empty(all)) throw usage_error("ramie: race: there is no function to run. Give it at least one.");
    nursery_internal::race_result<result> contenders;
    with_nursery(
        [&](nursery& n) {
          for (auto& f : all) contenders.spawn(n, f, site);
        },
        site);
    return contenders.take_first();
  }
  template <class... F>
  auto call_at(source_location site, F&... f) const {
    using result = typename nursery_internal::merge_types<std::variant<>, nursery_internal::kept_t<F>...>::type;
    nursery_internal::race_result<result> contenders;
    with_nursery([&](nursery& n) { (contenders.spawn(n, f, site), ...); }, site);
    return contenders.take_first();
  }
};

}  // namespace function_objects

// The results of f(), g() …: a tuple in the order of the functions, with std::monostate for void and
// std::reference_wrapper for a reference; of a range of functions, a vector.
inline constexpr function_objects::gather<nursery_internal::result_of_each> join_all{};

// Like join_all, but of outcomes: each a value, or the exception that was thrown instead.
inline constexpr function_objects::gather<nursery_internal::outcome_of_each> try_join_all{};

// The winner's result: one type if all functions return the same, else a std::variant of the types. Throws usage_error
// for an empty range.
inline constexpr function_objects::race race{};

}  // namespace ramie::inline v0
