// SPDX-License-Identifier: BSL-1.0
// The jump between stacks on Boost.Context's fcontext: every processor that Boost knows.
#pragma once

#include <boost/context/detail/fcontext.hpp>

#include <cstddef>

namespace ramie::platform {

using context = boost::context::detail::fcontext_t;
struct arrival {
  context from;
  void* data;
};

// fcontext passes its transfer by value in the same two registers or words as an arrival.
inline context make_context(void* top, std::size_t size, void (*entry)(arrival)) noexcept {
  static_assert(sizeof(arrival) == sizeof(boost::context::detail::transfer_t));
  return boost::context::detail::make_fcontext(top, size,
                                               reinterpret_cast<void (*)(boost::context::detail::transfer_t)>(entry));
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
