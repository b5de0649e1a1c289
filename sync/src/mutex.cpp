// SPDX-License-Identifier: BSL-1.0
// Operations on a mutex: one RMW if it is free, else a few more attempts, then fiber_wait.
#include <algorithm>

#include <ramie/platform/cpu.hpp>
#include <ramie/platform/thread.hpp>

#include "mutex_core.hpp"
#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_to_lock{"mutex lock"};
const wait_reason waits_to_lock_again{"condition variable, to lock its mutex again"};

// Holders that don't wait unlock within nanoseconds: cheaper than a park. Holders that wait do not, and nobody knows
// which is which; so each mutex learns whether spinning pays (as glibc's adaptive mutexes do). Attempts are far apart:
// each takes the cache line away from those who work with the lock, and so slows them down.
RAMIE_NOINLINE bool lock_spinning(mutex_core& m) noexcept {
  constexpr int most_attempts = platform::spinning_helps ? 4 : 0, first_pauses = 4;
  constexpr int unit = 16, slowness = 8;  // of what is learnt, and of learning it
  const int before = m.spin_estimate.load(std::memory_order_relaxed);
  const int limit = std::min(most_attempts, 2 * before / unit + 2);
  int attempts = 0;
  bool ours = false;
  while (attempts < limit && !ours) {
    for (int i = 0; i < first_pauses << attempts; ++i) platform::cpu_pause();
    ++attempts;
    ours = mutex_word::try_lock(m);
  }
  const int learnt = before + ((ours ? attempts * unit : 0) - before) / slowness;
  if (learnt != before) m.spin_estimate.store(learnt, std::memory_order_relaxed);
  return ours;
}

// wait(on, node) is one of the fiber_wait functions; it is called until the lock is ours. False: it was too late.
template <class Wait>
bool lock_waiting(mutex_core& m, Wait wait) {
  mutex_wait on(m);
  mutex_waiter node;
  for (;;) {
    const auto ended = wait(on, node);
    if (ended == wait_result::timed_out) return false;
    const bool by_itself = ended == wait_result::refused || node.outcome == 0;  // by publish, or by try_complete
    if (by_itself || mutex_word::take_turn(m, node)) return true;
  }
}

// False: it was too late.
RAMIE_NOINLINE bool lock_slow(mutex_core& m, const call_context& at, sync_time until) {
  if (until == never && owned_by(m.owner, at)) {
    misused(at, "locks a ramie::mutex that it holds already", "It is not recursive: unlock it first.");
  }
  if (mutex_word::try_lock(m) || lock_spinning(m)) return true;  // it may be free while others wait
  return lock_waiting(m, [until](waitable& on, waiter& node) { return park_until(on, node, waits_to_lock, until); });
}

struct mutex_case : mutex_word {
  [[nodiscard]] static bool try_complete(mutex_core& m, mutex_waiter& me) noexcept {
    if (!take_turn(m, me)) return false;
    set_owner(m.owner, current_context());
    return true;
  }
};

}  // namespace

void mutex_lock(mutex_core& m) {
  call_context at = current_context();
  begin_operation(at);
  std::uint32_t free = 0;
  if (!m.word.compare_exchange_strong(free, mutex_word::locked, std::memory_order_acquire, std::memory_order_relaxed))
      [[unlikely]]
    (void)lock_slow(m, at, never);
  set_owner(m.owner, at);
}

bool mutex_lock_until(mutex_core& m, sync_time until) {
  call_context at = current_context();
  begin_operation(at);
  if (!mutex_word::try_lock(m) && !lock_slow(m, at, until)) return false;
  set_owner(m.owner, at);
  return true;
}

bool mutex_try_lock(mutex_core& m) noexcept {
  const call_context at = current_context();
  spend_budget(at);
  if (!mutex_word::try_lock(m)) return false;
  set_owner(m.owner, at);
  return true;
}

void mutex_unlock(mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    const call_context at = current_context();
    if (!owned_by(m.owner, at)) {
      misused(at, "unlocks a ramie::mutex that it does not hold", "Unlock it where it was locked.");
    }
    clear_owner(m.owner);
  }
  std::uint32_t seen = mutex_word::locked;
  if (!m.word.compare_exchange_strong(seen, 0, std::memory_order_release, std::memory_order_relaxed)) [[unlikely]]
    mutex_word::unlock(m);
}

void mutex_lock_again(mutex_core& m) noexcept {
  if (!mutex_word::try_lock(m) && !lock_spinning(m)) {
    (void)lock_waiting(
        m, [](waitable& on, waiter& node) { return fiber_wait(on, node, waits_to_lock_again, cancellable::no); });
  }
  set_owner(m.owner, current_context());
}

ready_source mutex_source(mutex_core& m) noexcept {
  return source_of<mutex_case>(m);
}

}  // namespace ramie::sync_internal
