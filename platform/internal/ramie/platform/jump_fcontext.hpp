// SPDX-License-Identifier: BSL-1.0
// The jump between stacks on Boost.Context's fcontext: every processor that Boost knows.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cfenv>
#include <cstddef>
#include <cstdint>

namespace ramie::platform {

using context = boost::context::detail::fcontext_t;
struct arrival {
  context from;
  void* data;
};

inline constexpr bool jump_carries_floats = true;

// As it was where this was made.
struct float_environment {
  float_environment() noexcept { (void)std::fegetenv(&here); }
  std::fenv_t here;
};

// fcontext passes its transfer by value in the same two registers or words as an arrival. A context starts with the
// floating-point environment that it was made in, and the maker may be a fiber that has changed its own.
inline context make_context(void* top, std::size_t size, void (*entry)(arrival),
                            const float_environment& floats) noexcept {
  static_assert(sizeof(arrival) == sizeof(boost::context::detail::transfer_t));
  const float_environment maker;
  (void)std::fesetenv(&floats.here);
  // By way of void (*)(), from which compilers allow a cast without a warning.
  using start_function = void (*)(boost::context::detail::transfer_t);
  const auto start = reinterpret_cast<start_function>(reinterpret_cast<void (*)()>(entry));
  const context made = boost::context::detail::make_fcontext(top, size, start);
  (void)std::fesetenv(&maker.here);
  return made;
}

inline arrival jump(context to, void* data) noexcept {
  const auto landed = boost::context::detail::jump_fcontext(to, data);
  return {landed.fctx, landed.data};
}

// fcontext carries the floating-point environment along: nothing to check.
inline std::uint64_t float_controls() noexcept {
  return 0;
}

}  // namespace ramie::platform
