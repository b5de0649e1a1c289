// SPDX-License-Identifier: BSL-1.0
// Variadic functions that know where they were called from. Not part of the API.
//
// A call site is a default argument, and a default argument can't follow a parameter pack: the pack would not be
// deduced. So there is an overload for each number of arguments up to eight, once for all that need it; a ninth
// argument is refused with a message that names the way out. (Rejected: a first parameter that converts from the
// callable and notes the site: its type could not be deduced. A class template with a deduction guide can do it, but
// `join_all(f);` would then declare a variable.)
#pragma once

#include <concepts>
#include <ranges>
#include <type_traits>
#include <utility>

#include <ramie/detail/callable.hpp>
#include <ramie/source_location.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

template <class T>
concept not_a_site = !std::same_as<std::remove_cvref_t<T>, source_location>;

// spawn(f, args…), for a class with a member start_at(site, f, args…). Options is what spawn takes first in another
// form.
template <class Derived, class Options>
class spawns_with_site {
  template <class T>
  static constexpr bool is_options = std::is_same_v<std::remove_cvref_t<T>, Options>;
  Derived& self() noexcept { return static_cast<Derived&>(*this); }

 public:
  template <class F>
  requires(!is_options<F>)
  auto spawn(F&& f, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f));
  }
  template <class F, not_a_site A>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a));
  }
  template <class F, not_a_site A, not_a_site B>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b));
  }
  template <class F, not_a_site A, not_a_site B, not_a_site C>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, C&& c, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c));
  }
  template <class F, not_a_site A, not_a_site B, not_a_site C, not_a_site D>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, C&& c, D&& d, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                           std::forward<D>(d));
  }
  template <class F, not_a_site A, not_a_site B, not_a_site C, not_a_site D, not_a_site E>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, C&& c, D&& d, E&& e, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                           std::forward<D>(d), std::forward<E>(e));
  }
  template <class F, not_a_site A, not_a_site B, not_a_site C, not_a_site D, not_a_site E, not_a_site G>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, C&& c, D&& d, E&& e, G&& g, source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                           std::forward<D>(d), std::forward<E>(e), std::forward<G>(g));
  }
  template <class F, not_a_site A, not_a_site B, not_a_site C, not_a_site D, not_a_site E, not_a_site G, not_a_site H>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, C&& c, D&& d, E&& e, G&& g, H&& h,
             source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                           std::forward<D>(d), std::forward<E>(e), std::forward<G>(g), std::forward<H>(h));
  }
  template <class F, not_a_site A, not_a_site B, not_a_site C, not_a_site D, not_a_site E, not_a_site G, not_a_site H,
            not_a_site I>
  requires(!is_options<F>)
  auto spawn(F&& f, A&& a, B&& b, C&& c, D&& d, E&& e, G&& g, H&& h, I&& i,
             source_location site = source_location::current()) {
    return self().start_at(site, std::forward<F>(f), std::forward<A>(a), std::forward<B>(b), std::forward<C>(c),
                           std::forward<D>(d), std::forward<E>(e), std::forward<G>(g), std::forward<H>(h),
                           std::forward<I>(i));
  }
  template <class F, class A, class B, class C, class D, class E, class G, class H, class I, not_a_site Ninth,
            class... More>
  requires(!is_options<F>)
  void spawn(F&&, A&&, B&&, C&&, D&&, E&&, G&&, H&&, I&&, Ninth&&, More&&...) {
    static_assert(always_false<F>,
                  "ramie: nursery::spawn: spawn(f, args...) takes up to eight arguments. spawn({}, f, args...) takes any "
                  "number.");
  }
};

// name(f, g, …), for a function object with a member call_at(site, f, g, …), and name(range), for its member
// call_range_at(site, range). All overloads are in one class: clang 14 lets one of a derived class hide those of its
// base that differ in constraints alone.
template <class Derived>
class calls_with_site {
  const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }

 public:
  template <std::ranges::forward_range Range>
  requires std::invocable<std::ranges::range_reference_t<Range>>
  auto operator()(Range&& all, source_location site = source_location::current()) const {
    return self().call_range_at(site, all);
  }
  template <std::invocable A>
  auto operator()(A&& a, source_location site = source_location::current()) const {
    return self().call_at(site, a);
  }
  template <std::invocable A, std::invocable B>
  auto operator()(A&& a, B&& b, source_location site = source_location::current()) const {
    return self().call_at(site, a, b);
  }
  template <std::invocable A, std::invocable B, std::invocable C>
  auto operator()(A&& a, B&& b, C&& c, source_location site = source_location::current()) const {
    return self().call_at(site, a, b, c);
  }
  template <std::invocable A, std::invocable B, std::invocable C, std::invocable D>
  auto operator()(A&& a, B&& b, C&& c, D&& d, source_location site = source_location::current()) const {
    return self().call_at(site, a, b, c, d);
  }
  template <std::invocable A, std::invocable B, std::invocable C, std::invocable D, std::invocable E>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, source_location site = source_location::current()) const {
    return self().call_at(site, a, b, c, d, e);
  }
  template <std::invocable A, std::invocable B, std::invocable C, std::invocable D, std::invocable E, std::invocable F>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, source_location site = source_location::current()) const {
    return self().call_at(site, a, b, c, d, e, f);
  }
  template <std::invocable A, std::invocable B, std::invocable C, std::invocable D, std::invocable E, std::invocable F,
            std::invocable G>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, G&& g,
                  source_location site = source_location::current()) const {
    return self().call_at(site, a, b, c, d, e, f, g);
  }
  template <std::invocable A, std::invocable B, std::invocable C, std::invocable D, std::invocable E, std::invocable F,
            std::invocable G, std::invocable H>
  auto operator()(A&& a, B&& b, C&& c, D&& d, E&& e, F&& f, G&& g, H&& h,
                  source_location site = source_location::current()) const {
    return self().call_at(site, a, b, c, d, e, f, g, h);
  }
  template <std::invocable A, class B, class C, class D, class E, class F, class G, class H, std::invocable... More>
  requires(sizeof...(More) > 0)
  void operator()(A&&, B&&, C&&, D&&, E&&, F&&, G&&, H&&, More&&...) const {
    static_assert(always_false<A>,
                  "ramie: join_all, try_join_all, race and parallel_invoke take up to eight functions, or a range of any number.");
  }
};

}  // namespace ramie::nursery_internal
