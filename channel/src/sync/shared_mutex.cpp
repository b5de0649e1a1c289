// SPDX-License-Identifier: BSL-1.0
#include "shared_mutex_core.hpp"

#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_to_lock_alone{"shared mutex lock"};
const wait_reason waits_to_share{"shared mutex lock_shared"};
const wait_reason waits_to_lock_alone_until{"shared mutex lock, with a deadline"};
const wait_reason waits_to_share_until{"shared mutex lock_shared, with a deadline"};

void refuse_recursion(const shared_mutex_core& m, const whereabouts& at) noexcept {
  if (owned_by(m.owner, at)) {
    misused(at, "locks a ramie::shared_mutex that it has alone already", "It is not recursive: unlock it first.");
  }
}

void has_locked(shared_mutex_core& m, lock_kind how, const whereabouts& at) noexcept {
  if (how == lock_kind::alone) set_owner(m.owner, at);
}

}  // namespace

void shared_mutex_lock(shared_mutex_core& m, lock_kind how) {
  whereabouts at = look_around();
  begin_operation(at);
  if (!shared_mutex_word::try_lock(m, how)) {
    refuse_recursion(m, at);
    shared_mutex_wait on(m);
    shared_mutex_waiter node(how);
    (void)fiber_wait(on, node, how == lock_kind::alone ? waits_to_lock_alone : waits_to_share);
  }
  has_locked(m, how, at);
}

bool shared_mutex_lock_until(shared_mutex_core& m, lock_kind how, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (!shared_mutex_word::try_lock(m, how)) {
    shared_mutex_wait on(m);
    shared_mutex_waiter node(how);
    const auto& why = how == lock_kind::alone ? waits_to_lock_alone_until : waits_to_share_until;
    if (fiber_wait_until(on, node, why, deadline) == wait_result::timed_out) return false;
  }
  has_locked(m, how, at);
  return true;
}

bool shared_mutex_try_lock(shared_mutex_core& m, lock_kind how) noexcept {
  const whereabouts at = look_around();
  spend_budget(at);
  if (!shared_mutex_word::try_lock(m, how)) return false;
  has_locked(m, how, at);
  return true;
}

void shared_mutex_unlock(shared_mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    const whereabouts at = look_around();
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
      misused(look_around(), "unlocks a ramie::shared_mutex that nobody shares", "Unlock it where it was locked.");
    }
  }
  shared_mutex_word::unlock(m, lock_kind::shared);
}

void shared_mutex_destroyed(const shared_mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    const bool waiting = (m.word.load(std::memory_order_relaxed) & shared_mutex_word::waiting) != 0;
    misused(look_around(),
            waiting ? "destroys a ramie::shared_mutex that others wait for" : "destroys a locked ramie::shared_mutex",
            "It must outlive its holders and all who wait for it.");
  }
}

}  // namespace ramie::detail
