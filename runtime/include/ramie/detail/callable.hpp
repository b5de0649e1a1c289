// SPDX-License-Identifier: BSL-1.0
// For functions that take a callable: what a call gives, so that a callable that can't be called is told by a sentence
// in the body and not by a list of candidates. Not part of the API.
#pragma once

#include <type_traits>

namespace ramie::runtime_internal {

// For a static_assert in a branch that must not be instantiated.
template <class...>
inline constexpr bool always_false = false;

// The result of the call, or void if there is no such call.
template <class F, class... Args>
struct call_gives {
  using type = void;
};
template <class F, class... Args>
requires std::is_invocable_v<F, Args...>
struct call_gives<F, Args...> {
  using type = std::invoke_result_t<F, Args...>;
};
template <class F, class... Args>
using call_gives_t = typename call_gives<F, Args...>::type;

// What is kept, or passed on, of a call that gives R: an rvalue reference may lead into the callable, which may be gone
// by then, so what it leads to is moved.
template <class R>
using kept_result = std::conditional_t<std::is_rvalue_reference_v<R>, std::remove_cvref_t<R>, R>;
template <class R>
inline constexpr bool can_be_kept = !std::is_rvalue_reference_v<R> || std::is_constructible_v<kept_result<R>, R>;
template <class F, class... Args>
using call_keeps_t = kept_result<call_gives_t<F, Args...>>;

}  // namespace ramie::runtime_internal
