// SPDX-License-Identifier: BSL-1.0
// What the functions on streams have in common.
#pragma once

#include <cstddef>
#include <span>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ramie/stream.hpp>

#include "../errors.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

// or_throw of a function that returns how much it has transferred, also with an error, which says so, too.
template <class F>
std::invoke_result_t<F&, std::error_code&> transferred_or_throw(const char* what, F f) {
  std::error_code ec;
  const auto count = f(ec);
  if (ec) [[unlikely]]
    throw transfer_error(ec, what, count);
  return count;
}

// write_some of what is not empty; that nothing is taken is an error.
[[nodiscard]] std::size_t write_or_stop(any_writer to, std::span<const std::byte> from, std::error_code& ec,
                                        deadline until);

// f(), which must not throw, whether the block is left or thrown out of.
template <class F>
class at_scope_end {
 public:
  explicit at_scope_end(F f) noexcept : f_(std::move(f)) {}
  ~at_scope_end() { f_(); }
  at_scope_end(const at_scope_end&) = delete;
  at_scope_end& operator=(const at_scope_end&) = delete;

 private:
  F f_;
};

}  // namespace ramie::io_internal
