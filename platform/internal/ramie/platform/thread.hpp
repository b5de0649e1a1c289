// SPDX-License-Identifier: BSL-1.0
// How the runtime starts its threads.
#pragma once

#include <thread>

namespace ramie::platform {

// A thread that calls run(of). Throws std::system_error, std::bad_alloc.
[[nodiscard]] std::thread start_thread(void (*run)(void*), void* of);

// The same for a member function: start_thread<&monitor::run>(*this).
template <auto Member, class Object>
[[nodiscard]] std::thread start_thread(Object& of) {
  return start_thread([](void* object) { (static_cast<Object*>(object)->*Member)(); }, &of);
}

}  // namespace ramie::platform
