// SPDX-License-Identifier: BSL-1.0
// For builds in which an atomic must be as large as the real one: no old values, no ends.
#pragma once

#include <explore/memory.hpp>
#include <explore/sites.hpp>

namespace explore {

class traces {
 public:
  void arrive(const void*, access_kind) const noexcept { step(); }
  void require_alive() const noexcept {}
  std::uint64_t load(std::uint64_t newest, std::memory_order) const noexcept { return newest; }
  void store(std::uint64_t, std::uint64_t, std::memory_order) const noexcept {}
  void replace(std::uint64_t, std::uint64_t, std::memory_order) const noexcept {}
  void look_at_newest(std::uint64_t, std::memory_order) const noexcept {}
};

}  // namespace explore
