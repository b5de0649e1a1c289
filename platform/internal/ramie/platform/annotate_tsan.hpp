// SPDX-License-Identifier: BSL-1.0
// ThreadSanitizer: see annotate.hpp.
#pragma once

#include <sanitizer/tsan_interface.h>

#include <cstddef>

#if defined(__clang__)
#define RAMIE_SWITCHES_IDENTITY __attribute__((disable_sanitizer_instrumentation))
#else
#define RAMIE_SWITCHES_IDENTITY __attribute__((no_sanitize_thread))
#endif

namespace ramie::platform::annotate {

inline constexpr bool may_trim_stacks = true;
inline constexpr bool tells_fibers_apart = true;

struct stack_note {
  void* identity = nullptr;  // of the fiber suspended on this stack; null: a worker's loop
};
struct thread_note {
  void* identity = nullptr;
};

RAMIE_SWITCHES_IDENTITY inline thread_note this_thread() noexcept {
  return {__tsan_get_current_fiber()};
}

inline void stack_created(stack_note& note, void*, std::size_t) noexcept {
  note.identity = nullptr;
}
inline void stack_destroyed(stack_note&, void*, std::size_t) noexcept {}

RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void become(void* identity) noexcept {
  __tsan_switch_to_fiber(identity, __tsan_switch_to_fiber_no_sync);
}

RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void hand_over(const void* object) noexcept {
  __tsan_release(const_cast<void*>(object));
}
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void take_over(const void* object) noexcept {
  __tsan_acquire(const_cast<void*>(object));
}

// The code that leaves a stack releases it; the code that arrives on it, as the thread, does its bookkeeping there and
// must see what the last user did.
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void leave(stack_note& from, const stack_note&,
                                                       const thread_note& thread) noexcept {
  void* const self = __tsan_get_current_fiber();
  from.identity = self == thread.identity ? nullptr : self;
  hand_over(&from);
  if (from.identity != nullptr) become(thread.identity);
}
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void arrive(stack_note& self) noexcept {
  take_over(&self);
}
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void arrive_first(stack_note& self) noexcept {
  take_over(&self);
}

// The fiber, in turn, must know what the thread did there.
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void take_identity(stack_note& self) noexcept {
  if (self.identity == nullptr) return;
  hand_over(&self);
  become(self.identity);
  take_over(&self);
}

// A fresh fiber knows what its spawner did before the spawn, and what the thread it starts on has done.
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void begin_fiber(const void* frame) noexcept {
  become(__tsan_create_fiber(0));
  take_over(frame);
}
RAMIE_ALWAYS_INLINE RAMIE_SWITCHES_IDENTITY void end_fiber(const void* frame, const thread_note& thread) noexcept {
  void* const self = __tsan_get_current_fiber();
  hand_over(frame);
  become(thread.identity);
  take_over(frame);
  __tsan_destroy_fiber(self);
}

}  // namespace ramie::platform::annotate
