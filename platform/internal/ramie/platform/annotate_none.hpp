// SPDX-License-Identifier: BSL-1.0
// No sanitizer: see annotate.hpp.
#pragma once

#include <cstddef>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(low, high) (static_cast<void>(low), static_cast<void>(high), 0u)
#define VALGRIND_STACK_DEREGISTER(id) (void)(id)
#endif

#define RAMIE_SWITCHES_IDENTITY

namespace ramie::platform::annotate {

inline constexpr bool may_trim_stacks = true;
inline constexpr bool tells_fibers_apart = false;

struct stack_note {
  unsigned valgrind_id = 0;
};
struct thread_note {};

inline thread_note this_thread() noexcept {
  return {};
}

inline void stack_created(stack_note& note, void* low, std::size_t size) noexcept {
  note.valgrind_id = VALGRIND_STACK_REGISTER(low, static_cast<char*>(low) + size);
}
inline void stack_destroyed(stack_note& note, void*, std::size_t) noexcept {
  VALGRIND_STACK_DEREGISTER(note.valgrind_id);
}

inline void leave(stack_note&, const stack_note&, const thread_note&) noexcept {}
inline void arrive(stack_note&) noexcept {}
inline void arrive_first(stack_note&) noexcept {}
inline void take_identity(stack_note&) noexcept {}

inline void begin_fiber(const void*) noexcept {}
inline void end_fiber(const void*, const thread_note&) noexcept {}

inline void hand_over(const void*) noexcept {}
inline void take_over(const void*) noexcept {}

}  // namespace ramie::platform::annotate
