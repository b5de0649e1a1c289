// SPDX-License-Identifier: BSL-1.0
// For the simulator (bench/scale): an atomic operation costs what its cache line costs, and keeps nothing.
#pragma once

#include <explore/memory.hpp>
#include <explore/simulated_thread.hpp>
#include <explore/sites.hpp>

namespace explore {

class traces {
 public:
  void arrive(const void* address, access_kind kind) const noexcept { access_atomic(address, kind); }
  void require_alive() const noexcept {}
  std::uint64_t load(std::uint64_t newest, std::memory_order) const noexcept { return newest; }
  void store(std::uint64_t, std::uint64_t, std::memory_order) const noexcept {}
  void replace(std::uint64_t, std::uint64_t, std::memory_order) const noexcept {}
  void look_at_newest(std::uint64_t, std::memory_order) const noexcept {}
};

}  // namespace explore
