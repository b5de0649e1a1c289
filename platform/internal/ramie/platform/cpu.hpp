// SPDX-License-Identifier: BSL-1.0
// The processor: its cache line and how to wait a moment.
#pragma once

#include <cstddef>

#if defined(RAMIE_SIMULATED)
namespace explore {
void pause_processor() noexcept;
}
#endif

namespace ramie::platform {

// Two 64-byte lines: the adjacent-line prefetcher of x86-64 and the lines of big aarch64 cores make
// 128 the distance at which two writers stop disturbing each other.
inline constexpr std::size_t cache_line = 128;

inline void cpu_pause() noexcept {
#if defined(RAMIE_SIMULATED)
  explore::pause_processor();
#elif defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#else
  asm volatile("" ::: "memory");
#endif
}

// Processors this process may run on: its affinity mask, at least 1.
[[nodiscard]] unsigned usable_cpus() noexcept;

// The processor that the calling thread runs on, or did a moment ago: only a hint. Negative: the system does not tell.
[[nodiscard]] int current_cpu() noexcept;

}  // namespace ramie::platform
