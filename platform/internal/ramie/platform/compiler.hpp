// SPDX-License-Identifier: BSL-1.0
// What we need of the compiler, named once. Internal: these macros never reach an installed header.
#pragma once

#define RAMIE_NOINLINE [[gnu::noinline]]
#define RAMIE_ALWAYS_INLINE [[gnu::always_inline]] inline

// The simulator (bench/scale) has ThreadSanitizer's calls inserted, and nothing else of it.
#if defined(RAMIE_SIMULATED)
#elif defined(__SANITIZE_THREAD__)
#define RAMIE_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RAMIE_TSAN 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#define RAMIE_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define RAMIE_ASAN 1
#endif
#endif

// A chain of calls around a context switch mispredicts one return per link: the return stack of the
// processor belongs to the fiber that was left. So the chain is flattened into one function. Not under
// ThreadSanitizer, which can't inline across differently instrumented functions.
#if defined(RAMIE_TSAN)
#define RAMIE_FLATTEN inline
#define RAMIE_FLATTEN_LAMBDA
#else
#define RAMIE_FLATTEN [[gnu::always_inline]] inline
#define RAMIE_FLATTEN_LAMBDA __attribute__((always_inline))
#endif

namespace ramie::platform {

// Debug checks cost time on hot paths, so they live behind this constant; checks of corruption that
// are free (the word is already in a register) are always on and do not ask it.
#if defined(RAMIE_CHECKS)
inline constexpr bool debug_checks = true;
#else
inline constexpr bool debug_checks = false;
#endif

// Hides from the optimiser where a value came from. A function that may run before and after a
// context switch must not let the compiler reuse an address derived from thread-local storage:
// the fiber can be on another thread by then. noinline alone does not stop that (docs/hazards.md).
template <class T>
RAMIE_ALWAYS_INLINE T* launder_address(T* p) noexcept {
  asm volatile("" : "+r"(p));
  return p;
}

// Where the stack is now, more or less. (A frame address would cost the caller a register.)
RAMIE_ALWAYS_INLINE const void* stack_pointer() noexcept {
#if defined(__x86_64__)
  const void* here;
  asm("movq %%rsp, %0" : "=r"(here));
  return here;
#else
  return __builtin_frame_address(0);
#endif
}

}  // namespace ramie::platform
