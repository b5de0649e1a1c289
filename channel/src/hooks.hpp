// SPDX-License-Identifier: BSL-1.0
// Moments at which a test may run code of its own, in the build for tests; twin files, one picked here. They lie
// outside all locks, between the steps that other parties can see, so that a test can drive an exact interleaving from
// one thread.
#pragma once

namespace ramie::channel_internal {

using namespace runtime_internal;

class channel_core;

enum class channel_moment {
  will_publish,    // an operation can't be completed and is about to list itself
  has_published,   // it is listed; the fiber has not parked yet
  will_unpublish,  // a wait ended without a partner; its node is still listed
  will_complete,   // a partner was claimed and its element moved; it has not been completed
  has_closed,      // the first step of a close is done, the elements of waiting senders have not been moved
};

}  // namespace ramie::channel_internal

#if defined(RAMIE_HOOKS)
#include "hooks_on.hpp"
#else
#include "hooks_off.hpp"
#endif
