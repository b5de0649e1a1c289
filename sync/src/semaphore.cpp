// SPDX-License-Identifier: BSL-1.0
#include "semaphore_core.hpp"

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_permits{"semaphore acquire"};

// A count that is negative or too big finds too few permits: it is refused here, where time does not matter.
RAMIE_NOINLINE bool acquire_slow(semaphore_core& s, std::int64_t count, sync_time until) {
  return wait_slow<semaphore_word>(s, waits_for_permits, until, checked_permits(count, "semaphore::acquire"));
}

bool try_acquire(semaphore_core& s, std::int64_t count) noexcept {
  return semaphore_word::try_acquire(s, static_cast<std::uint64_t>(count));
}

[[noreturn, gnu::cold]] RAMIE_NOINLINE void refuse_release(std::int64_t count) {
  constexpr const char* here = "semaphore::release";
  (void)checked_permits(count, here);
  refuse_count(here, count, "That would be more permits than it can count. Release as many as were acquired.");
}

}  // namespace

void semaphore_acquire(semaphore_core& s, std::int64_t count) {
  call_context at = current_context();
  begin_operation(at);
  if (!try_acquire(s, count)) [[unlikely]]
    (void)acquire_slow(s, count, never);
}

bool semaphore_acquire_until(semaphore_core& s, std::int64_t count, sync_time until) {
  call_context at = current_context();
  begin_operation(at);
  return try_acquire(s, count) || acquire_slow(s, count, until);
}

bool semaphore_try_acquire(semaphore_core& s, std::int64_t count) {
  spend_budget(current_context());
  if (try_acquire(s, count)) return true;
  (void)checked_permits(count, "semaphore::try_acquire");
  return false;
}

void semaphore_release(semaphore_core& s, std::int64_t count) {
  if (!semaphore_word::release(s, static_cast<std::uint64_t>(count))) [[unlikely]]
    refuse_release(count);
}

ready_source semaphore_source(semaphore_core& s, std::uint64_t count) noexcept {
  return source_of<semaphore_word>(s, count);
}

}  // namespace ramie::sync_internal
