// SPDX-License-Identifier: BSL-1.0
// What an atomic of the model keeps beside its value: its place in the memory model, and whether it lives.
#pragma once

#include <explore/memory.hpp>
#include <explore/sites.hpp>

namespace explore {

class traces {
 public:
  traces() noexcept = default;
  ~traces() { alive_ = false; }
  void arrive(const void*, access_kind) const noexcept { step(); }
  void require_alive() const noexcept {
    if (!alive_) touched_after_its_end();
  }
  std::uint64_t load(std::uint64_t newest, std::memory_order o) const noexcept {
    return explore::load(where_, newest, o);
  }
  void store(std::uint64_t newest, std::uint64_t value, std::memory_order o) const noexcept {
    explore::store(where_, newest, value, o);
  }
  void replace(std::uint64_t newest, std::uint64_t value, std::memory_order o) const noexcept {
    explore::replace(where_, newest, value, o);
  }
  void look_at_newest(std::uint64_t newest, std::memory_order o) const noexcept {
    explore::look_at_newest(where_, newest, o);
  }

 private:
  mutable location where_;
  volatile bool alive_ = true;  // scenarios keep the memory of what they destroy
};

}  // namespace explore
