// SPDX-License-Identifier: BSL-1.0
#include <string>

#include <ramie/detail/wait_queue.hpp>
#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/runtime/spawn.hpp>

#include "owner.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

// Of plain threads alone, which don't switch: its address may be kept.
RAMIE_NOINLINE const void* thread_identity() noexcept {
  static thread_local const char here = 0;
  return platform::launder_address(&here);
}

std::string caller_name(const call_context& at) {
  return at.self != nullptr ? describe(*at.self) : "a plain thread";
}

}  // namespace

const void* caller_identity(const call_context& at) noexcept {
  return at.self != nullptr ? at.self : thread_identity();
}

void misused(const call_context& at, const char* did, const char* what_to_do) noexcept {
  platform::fatal("%s %s. %s", caller_name(at).c_str(), did, what_to_do);
}

void destroyed_in_use(const char* object, const char* that) noexcept {
  if constexpr (platform::debug_checks) {
    platform::fatal("%s destroys a ramie::%s that %s. It must outlive all who use it.",
                    caller_name(current_context()).c_str(), object, that);
  }
}

void refuse_count(const char* function, std::int64_t count, const char* what_to_do) {
  throw usage_error(std::string("ramie: ") + function + ": a count of " + std::to_string(count) + ". " + what_to_do);
}

}  // namespace ramie::sync_internal
