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

inline void throw_if(std::error_code ec, const char* what, std::uint64_t transferred) {
  if (ec) [[unlikely]]
    throw transfer_error(ec, what, transferred);
}

// write_some of what is not empty; that nothing is taken is an error.
[[nodiscard]] std::size_t write_or_stop(any_writer to, std::span<const std::byte> from, std::error_code& ec,
                                        deadline until);

// f(), which must not throw, whether the block is left or thrown out of.
template <class F>
class on_exit {
 public:
  explicit on_exit(F f) noexcept : f_(std::move(f)) {}
  ~on_exit() { f_(); }
  on_exit(const on_exit&) = delete;
  on_exit& operator=(const on_exit&) = delete;

 private:
  F f_;
};

}  // namespace ramie::detail
