// SPDX-License-Identifier: BSL-1.0
// AddressSanitizer and LeakSanitizer: see annotate.hpp.
#pragma once

#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#include <sanitizer/lsan_interface.h>

#include <cstddef>

#define RAMIE_SWITCHES_IDENTITY

namespace ramie::platform::annotate {

// A suspended loop may own a fake stack that AddressSanitizer would never see again.
inline constexpr bool may_trim_stacks = false;
inline constexpr bool tells_fibers_apart = false;

struct stack_note {
  void* fake = nullptr;
  const void* low = nullptr;
  std::size_t size = 0;
};
struct thread_note {};

inline thread_note this_thread() noexcept {
  return {};
}

// Heap that only a parked fiber's stack points to is not leaked: make the stack a root.
inline void stack_created(stack_note& note, void* low, std::size_t size) noexcept {
  note = {nullptr, low, size};
  __lsan_register_root_region(low, size);
}
inline void stack_destroyed(stack_note&, void* low, std::size_t size) noexcept {
  __lsan_unregister_root_region(low, size);
  __asan_unpoison_memory_region(low, size);
}

inline void native_bounds(stack_note& note) noexcept {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
  void* low = nullptr;
  pthread_attr_getstack(&attributes, &low, &note.size);
  note.low = low;
  pthread_attr_destroy(&attributes);
}

inline void leave(stack_note& from, const stack_note& to, const thread_note&) noexcept {
  if (from.low == nullptr) native_bounds(from);
  __sanitizer_start_switch_fiber(&from.fake, to.low, to.size);
}
inline void arrive(stack_note& self) noexcept {
  __sanitizer_finish_switch_fiber(self.fake, nullptr, nullptr);
}
inline void arrive_first(stack_note&) noexcept {
  __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
}
inline void take_identity(stack_note&) noexcept {}

inline void begin_fiber(const void*) noexcept {}
inline void end_fiber(const void*, const thread_note&) noexcept {}

inline void hand_over(const void*) noexcept {}
inline void take_over(const void*) noexcept {}

}  // namespace ramie::platform::annotate
