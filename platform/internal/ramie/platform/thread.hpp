// SPDX-License-Identifier: BSL-1.0
// The one alias for threads and what they block on, beside atomic.hpp: a model build swaps both, and the explorer
// decides who runs. And how the runtime starts its threads.
#pragma once

#if defined(RAMIE_MODEL)

#include <explore/model_thread.hpp>

namespace ramie::platform {
using explore::condition_variable;
using explore::mutex;
using explore::thread;
using explore::yield_thread;
using explore::spinning_helps;
}  // namespace ramie::platform

#else

#include <sched.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace ramie::platform {
using std::condition_variable;
using std::mutex;
using std::thread;
inline constexpr bool spinning_helps = true;
// The rest of the time slice is for others.
inline void yield_thread() noexcept {
  ::sched_yield();
}
}  // namespace ramie::platform

#endif

namespace ramie::platform {

// A thread that calls run(of). Throws std::system_error, std::bad_alloc.
[[nodiscard]] thread start_thread(void (*run)(void*), void* of);

// The calling thread's timed waits end on time, not up to 50 µs later, which is Linux's default.
void wake_on_time() noexcept;

// The same for a member function: start_thread<&monitor::run>(*this).
template <auto Member, class Object>
[[nodiscard]] thread start_thread(Object& of) {
  return start_thread([](void* object) { (static_cast<Object*>(object)->*Member)(); }, &of);
}

}  // namespace ramie::platform
