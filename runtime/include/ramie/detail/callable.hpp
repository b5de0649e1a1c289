// SPDX-License-Identifier: BSL-1.0
// For functions that take a callable: what a call gives, so that a callable that can't be called is told by a sentence
// in the body and not by a list of candidates. Not part of the API.
#pragma once

#include <type_traits>

namespace ramie::detail {

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

}  // namespace ramie::detail
