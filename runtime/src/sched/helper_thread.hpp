// SPDX-License-Identifier: BSL-1.0
// A runtime's own threads besides its workers: its monitor, the keeper of its time, those of its blocking pool. What
// runs on them may be a program's code – a report handler, the callback of a stop token, a call that blocks – so those
// who must know whose thread they are on can ask.
#pragma once

namespace ramie::runtime_internal {

// The part of a runtime (a monitor, timekeeper or blocking_pool) that the calling thread was started for; null: none.
// Set once, by the thread itself. The threads of the explorer have one each (tests/explore).
extern constinit thread_local const void* helper_of;

}  // namespace ramie::runtime_internal
