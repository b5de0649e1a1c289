// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/futex.hpp>

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ramie/platform/faults.hpp>

namespace ramie::platform {

void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* until) noexcept {
  if (faults::strikes(fault::sleep)) return;
  ::syscall(SYS_futex, &word, FUTEX_WAIT_BITSET_PRIVATE, expected, until, nullptr, FUTEX_BITSET_MATCH_ANY);
}

void futex_wake_one(atomic<std::uint32_t>* word) noexcept {
  ::syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace ramie::platform
