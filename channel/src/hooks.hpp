// SPDX-License-Identifier: BSL-1.0
// Moments at which a test may step in, in the build for tests; twin files, one picked here. They lie outside all locks,
// between the steps that other parties can see, so that a test can drive an exact interleaving from one thread.
#pragma once

namespace ramie::detail {

class channel_core;

enum class channel_moment {
  will_publish,    // an operation can't be completed and is about to list itself
  has_published,   // it is listed; the fiber has not parked yet
  will_unpublish,  // a wait ended without a partner; it is still listed
  will_complete,   // a partner was claimed and its element moved; it has not been told
  has_closed,      // the channel is closed; senders that wait have not been seen to
};

}  // namespace ramie::detail

#if defined(RAMIE_HOOKS)
#include "hooks_on.hpp"
#else
#include "hooks_off.hpp"
#endif
