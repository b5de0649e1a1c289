// SPDX-License-Identifier: BSL-1.0
// Telling the sanitizers what a context switch does. Twin files with equal signatures, one picked here:
//
//   annotate_tsan.hpp   every fiber looks like a thread to ThreadSanitizer
//   annotate_asan.hpp   stacks known to AddressSanitizer and LeakSanitizer
//   annotate_none.hpp   nothing, but valgrind is told where stacks are
//
// Identities under ThreadSanitizer. Scheduler code always runs as the OS thread; a fiber's own code
// runs as the fiber. A switch leaves the fiber's identity before it jumps and takes it up again after
// the arrival's bookkeeping. Thread and fiber share a stack, so each learns what the other did when a fiber is
// resumed. Fibers that take turns on one worker therefore look ordered once both have been resumed there; a
// race between fibers on different workers, or before the resume, is still a race. What changes hands on
// one worker without an atomic (a pooled frame, a pooled stack) says so with hand_over / take_over.
//
// ThreadSanitizer keeps one shadow call stack per identity: a function that is entered as one and left
// as another would unbalance both, so such functions are marked RAMIE_SWITCHES_IDENTITY.
#pragma once

#include <ramie/platform/compiler.hpp>

#if defined(RAMIE_TSAN)
#include <ramie/platform/annotate_tsan.hpp>
#elif defined(RAMIE_ASAN)
#include <ramie/platform/annotate_asan.hpp>
#else
#include <ramie/platform/annotate_none.hpp>
#endif
