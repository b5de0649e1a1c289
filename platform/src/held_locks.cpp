// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/held_locks.hpp>

#include <ramie/platform/annotate.hpp>
#include <ramie/platform/fatal.hpp>

namespace ramie::platform {

namespace {

// Adds `by` and returns the count. Not inlined: the address must be that of the current thread. Not instrumented:
// ThreadSanitizer takes the fibers of one thread for threads, and would see a race.
[[gnu::noinline]] RAMIE_SWITCHES_IDENTITY int held_locks(int by) noexcept {
  static thread_local constinit int count = 0;
  return *launder_address(&count) += by;
}

}  // namespace

void count_held_lock(int by) noexcept {
  (void)held_locks(by);
}

void check_no_lock_held(const char* what) noexcept {
  if (held_locks(0) == 0) [[likely]]
    return;
  fatal("%s while a lock is held. Collect waiters under the lock, release it, then complete them.", what);
}

}  // namespace ramie::platform
