// SPDX-License-Identifier: BSL-1.0
// Who holds a lock: only builds with checks keep it.
#pragma once

#include <ramie/detail/atomic.hpp>
#include <ramie/platform/compiler.hpp>
#include <ramie/runtime/current.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

// The caller, as fiber or as thread. Different callers that live at the same time are different.
[[nodiscard]] const void* caller_identity(const call_context& at) noexcept;

// "fiber #7 'acceptor', spawned at server.cpp:12 <did>", and what to do instead.
[[noreturn, gnu::cold]] void misused(const call_context& at, const char* did, const char* what_to_do) noexcept;

using owner_field = atomic<const void*>;

[[gnu::always_inline]] inline void set_owner(owner_field& owner, const call_context& at) noexcept {
  if constexpr (platform::debug_checks) owner.store(caller_identity(at), std::memory_order_relaxed);
}
[[gnu::always_inline]] inline void clear_owner(owner_field& owner) noexcept {
  if constexpr (platform::debug_checks) owner.store(nullptr, std::memory_order_relaxed);
}
// Relaxed: one's own identity is there only if one has put it there.
[[nodiscard]] inline bool owned_by(const owner_field& owner, const call_context& at) noexcept {
  return platform::debug_checks && owner.load(std::memory_order_relaxed) == caller_identity(at);
}

}  // namespace ramie::sync_internal
