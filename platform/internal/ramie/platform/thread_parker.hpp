// SPDX-License-Identifier: BSL-1.0
// How an OS thread sleeps until another thread wakes it. The contract; one typed test suite runs for every mechanism:
//
//   park()         Returns at once and consumes the token if one is there; else sleeps until unpark.
//   park_until(t)  The same, but gives up at t; returns whether it consumed a token.
//   has_token()    Whether park() would return at once. Only a look: for an owner that spins before it parks.
//   unpark()       Leaves one token (never two) and wakes the sleeper if there is one.
//
// Only the owning thread parks; any thread may unpark, also while the parker's owner returns from
// park: unpark touches the parker's memory for the last time before the owner can see its token.
// Three states: unparked 0, parked 1, notified 2.
#pragma once

#include <ramie/platform/futex_parker.hpp>
#include <ramie/platform/portable_parker.hpp>

namespace ramie::platform {

#if defined(__linux__)
using thread_parker = futex_parker;
#else
using thread_parker = portable_parker;
#endif

}  // namespace ramie::platform
