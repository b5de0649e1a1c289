// SPDX-License-Identifier: BSL-1.0
// What the functions on streams have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <system_error>
#include <utility>

#include <ramie/stream.hpp>

namespace ramie::detail {

inline void throw_transfer_error_if(std::error_code ec, const char* what, std::uint64_t transferred) {
  if (ec) [[unlikely]]
    throw transfer_error(ec, what, transferred);
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

}  // namespace ramie::detail
