// SPDX-License-Identifier: BSL-1.0
// Several buffers as an array of iovec.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <span>

namespace ramie::io_internal {

using namespace runtime_internal;

constexpr std::size_t most_at_once = 0x7ffff000;  // no system call transfers more
constexpr std::size_t pieces_at_once = 64;

// Lists the first pieces that are not empty, without the first `skip` bytes of the first. Returns how many it lists.
template <class Buffers>
[[nodiscard]] std::size_t list_pieces(Buffers from, std::size_t skip, std::span<iovec, pieces_at_once> out) noexcept {
  std::size_t count = 0;
  std::size_t room = most_at_once;
  for (std::size_t i = 0; i < from.size() && count < out.size() && room != 0; ++i) {
    const auto piece = from[i].subspan(i == 0 ? skip : 0);
    if (piece.empty()) continue;
    const std::size_t size = std::min(piece.size(), room);
    out[count++] = {const_cast<std::byte*>(piece.data()), size};
    room -= size;
  }
  return count;
}

}  // namespace ramie::io_internal
