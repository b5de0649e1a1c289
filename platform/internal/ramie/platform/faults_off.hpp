// SPDX-License-Identifier: BSL-1.0
// See faults.hpp: only the machine itself refuses.
#pragma once

namespace ramie::platform::faults {

constexpr bool strikes(fault) noexcept {
  return false;
}
constexpr bool occurs(io_fault) noexcept {
  return false;
}

}  // namespace ramie::platform::faults
