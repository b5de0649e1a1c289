// SPDX-License-Identifier: BSL-1.0
#include "semaphore_core.hpp"

#include <ramie/platform/fatal.hpp>
#include <ramie/runtime/budget.hpp>

#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_permits{"semaphore acquire"};
const wait_reason waits_for_permits_until{"semaphore acquire, with a deadline"};

}  // namespace

void semaphore_acquire(semaphore_core& s, std::uint64_t count) {
  whereabouts at = look_around();
  begin_operation(at);
  if (semaphore_word::try_acquire(s, count)) [[likely]]
    return;
  semaphore_wait on(s);
  semaphore_waiter node(count);
  (void)fiber_wait(on, node, waits_for_permits);
}

bool semaphore_acquire_until(semaphore_core& s, std::uint64_t count, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (semaphore_word::try_acquire(s, count)) return true;
  semaphore_wait on(s);
  semaphore_waiter node(count);
  return fiber_wait_until(on, node, waits_for_permits_until, deadline) != wait_result::timed_out;
}

bool semaphore_try_acquire(semaphore_core& s, std::uint64_t count) noexcept {
  spend_budget(look_around());
  return semaphore_word::try_acquire(s, count);
}

void semaphore_release(semaphore_core& s, std::uint64_t count) noexcept {
  if (!semaphore_word::release(s, count)) [[unlikely]] {
    misused(look_around(), "releases more permits than a ramie::semaphore can count",
            "Release as many as were acquired.");
  }
}

void semaphore_destroyed(const semaphore_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::semaphore that others wait for", "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
