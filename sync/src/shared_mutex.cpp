// SPDX-License-Identifier: BSL-1.0
#include "shared_mutex_core.hpp"

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_to_lock_alone{"shared mutex lock"};
const wait_reason waits_to_share{"shared mutex lock_shared"};

void has_locked(shared_mutex_core& m, lock_kind how, const call_context& at) noexcept {
  if (how == lock_kind::alone) set_owner(m.owner, at);
}

struct shared_mutex_case : shared_mutex_word {
  [[nodiscard]] static bool try_complete(shared_mutex_core& m, shared_mutex_waiter& me) noexcept {
    if (!shared_mutex_word::try_complete(m, me)) return false;
    has_locked(m, me.kind, current_context());
    return true;
  }
};

}  // namespace

bool shared_mutex_lock(shared_mutex_core& m, lock_kind how, sync_time until) {
  call_context at = current_context();
  begin_operation(at);
  if (!shared_mutex_word::try_lock(m, how)) {
    if (until == never && owned_by(m.owner, at)) {
      misused(at, "locks a ramie::shared_mutex that it has alone already", "It is not recursive: unlock it first.");
    }
    const auto& why = how == lock_kind::alone ? waits_to_lock_alone : waits_to_share;
    if (!wait_slow<shared_mutex_word>(m, why, until, how)) return false;
  }
  has_locked(m, how, at);
  return true;
}

bool shared_mutex_try_lock(shared_mutex_core& m, lock_kind how) noexcept {
  const call_context at = current_context();
  spend_budget(at);
  if (!shared_mutex_word::try_lock(m, how)) return false;
  has_locked(m, how, at);
  return true;
}

void shared_mutex_unlock(shared_mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    const call_context at = current_context();
    if (!owned_by(m.owner, at)) {
      misused(at, "unlocks a ramie::shared_mutex that it does not have alone", "Unlock it where it was locked.");
    }
    clear_owner(m.owner);
  }
  shared_mutex_word::unlock(m, lock_kind::alone);
}

void shared_mutex_unlock_shared(shared_mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    if (m.word.load(std::memory_order_relaxed) < shared_mutex_word::reader) {
      misused(current_context(), "unlocks a ramie::shared_mutex that nobody shares", "Unlock it where it was locked.");
    }
  }
  shared_mutex_word::unlock(m, lock_kind::shared);
}

ready_source shared_mutex_source(shared_mutex_core& m, lock_kind how) noexcept {
  return source_of<shared_mutex_case>(m, how == lock_kind::shared);
}

}  // namespace ramie::sync_internal
