// SPDX-License-Identifier: BSL-1.0
#include "owner.hpp"

#include <ramie/platform/fatal.hpp>
#include <ramie/runtime/spawn.hpp>

namespace ramie::detail {

namespace {

// Of plain threads alone, which don't switch: its address may be kept.
RAMIE_NOINLINE const void* thread_identity() noexcept {
  static thread_local const char here = 0;
  return platform::launder_address(&here);
}

}  // namespace

const void* caller_identity(const whereabouts& at) noexcept {
  return at.self != nullptr ? at.self : thread_identity();
}

void misused(const whereabouts& at, const char* did, const char* what_to_do) noexcept {
  const auto who = at.self != nullptr ? describe(*at.self) : "a plain thread";
  platform::fatal("%s %s. %s", who.c_str(), did, what_to_do);
}

}  // namespace ramie::detail
