// SPDX-License-Identifier: BSL-1.0
// Operations on a mutex: one RMW if it is free, a little patience, then the one door to sleep.
#include <algorithm>

#include <ramie/platform/cpu.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/runtime/budget.hpp>

#include "mutex_core.hpp"
#include "mutex_ops.hpp"
#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_to_lock{"mutex lock"};
const wait_reason waits_to_lock_again{"condition variable, to lock its mutex again"};
const wait_reason waits_to_lock_until{"mutex lock, with a deadline"};

// Holders that don't wait let go within nanoseconds: cheaper than a park. Holders that wait do not, and nobody knows
// which is which; so each mutex learns whether it pays (as glibc's adaptive mutexes do). Looks are far apart: each
// takes the cache line from those who work with it, who meanwhile get on much faster without us.
RAMIE_NOINLINE bool lock_spinning(mutex_core& m) noexcept {
  constexpr int most_looks = platform::spinning_helps ? 4 : 0, first_pauses = 4;
  constexpr int unit = 16, slowness = 8;  // of what is learnt, and of learning it
  const int before = m.looks.load(std::memory_order_relaxed);
  const int limit = std::min(most_looks, 2 * before / unit + 2);
  int looks = 0;
  bool ours = false;
  while (looks < limit && !ours) {
    for (int i = 0; i < first_pauses << looks; ++i) platform::cpu_pause();
    ++looks;
    ours = mutex_word::try_lock(m);
  }
  const int learnt = before + ((ours ? looks * unit : 0) - before) / slowness;
  if (learnt != before) m.looks.store(learnt, std::memory_order_relaxed);
  return ours;
}

// fiber_wait or fiber_wait_until, again and again. False: it was too late.
template <class Wait>
bool lock_waiting(mutex_core& m, Wait wait) {
  mutex_wait on(m);
  mutex_waiter node;
  for (;;) {
    const auto ended = wait(on, node);
    if (ended == wait_result::timed_out) return false;
    if (ended == wait_result::refused || node.outcome != static_cast<std::uint32_t>(mutex_turn::try_again)) return true;
    node.outcome = 0;
    node.woken = true;
    if (mutex_word::try_lock(m, node)) return true;  // M13
  }
}

RAMIE_NOINLINE void lock_slowly(mutex_core& m, const whereabouts& at) {
  if (owned_by(m.owner, at)) {
    misused(at, "locks a ramie::mutex that it holds already", "It is not recursive: unlock it first.");
  }
  if (mutex_word::try_lock(m) || lock_spinning(m)) return;  // free, perhaps, but with others in the line
  (void)lock_waiting(m, [](waitable& on, waiter& node) { return fiber_wait(on, node, waits_to_lock); });
}

}  // namespace

void mutex_lock(mutex_core& m) {
  whereabouts at = look_around();
  begin_operation(at);
  std::uint32_t free = 0;
  if (!m.word.compare_exchange_strong(free, mutex_word::locked, std::memory_order_acquire, std::memory_order_relaxed))
      [[unlikely]]
    lock_slowly(m, at);
  set_owner(m.owner, at);
}

bool mutex_lock_until(mutex_core& m, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  const auto wait = [deadline](waitable& on, waiter& node) {
    return fiber_wait_until(on, node, waits_to_lock_until, deadline);
  };
  if (!mutex_word::try_lock(m) && !lock_spinning(m) && !lock_waiting(m, wait)) return false;
  set_owner(m.owner, at);
  return true;
}

bool mutex_try_lock(mutex_core& m) noexcept {
  const whereabouts at = look_around();
  spend_budget(at);
  if (!mutex_word::try_lock(m)) return false;
  set_owner(m.owner, at);
  return true;
}

void mutex_unlock(mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    const whereabouts at = look_around();
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
  set_owner(m.owner, look_around());
}

void mutex_destroyed(const mutex_core& m) noexcept {
  if constexpr (platform::debug_checks) {
    const bool waiting = (m.word.load(std::memory_order_relaxed) & ~mutex_word::locked) != 0;
    misused(look_around(), waiting ? "destroys a ramie::mutex that others wait for" : "destroys a locked ramie::mutex",
            "It must outlive its holder and all who wait for it.");
  }
}

}  // namespace ramie::detail
