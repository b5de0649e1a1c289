// SPDX-License-Identifier: BSL-1.0
// The alias for atomics in public headers; the rooms' own is platform/atomic.hpp, which says why there is one.
#pragma once

#if defined(RAMIE_MODEL)

#include <explore/model_atomic.hpp>

namespace ramie::runtime_internal {
template <class T>
using atomic = explore::model_atomic<T>;
}

#else

#include <atomic>

namespace ramie::runtime_internal {
template <class T>
using atomic = std::atomic<T>;
}

#endif
