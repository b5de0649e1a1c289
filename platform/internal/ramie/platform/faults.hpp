// SPDX-License-Identifier: BSL-1.0
// Where the machine may refuse us something. In the build for tests a test can make it so; twin files, one picked here.
// What is refused by operator new is not listed: tests replace that one.
//
//   if (faults::strikes(fault::stack_mapping)) return nullptr;  // as if mmap had failed
//   if (faults::occurs(io_fault::again)) return -EAGAIN;         // at random
#pragma once

namespace ramie::platform {

enum class fault : unsigned char {
  stack_mapping,      // mmap of a region of stacks
  guard_by_madvise,   // MADV_GUARD_INSTALL, for one stack or to find out whether there is such a thing
  guard_feigned,      // the same says yes and does nothing, where that is found out: as under qemu-user
  guard_by_mprotect,  // mprotect of a guard
  advice_at_once,     // process_madvise of many ranges: the kernel has no such thing
  big_memory,         // mmap for a pool that has grown large
  thread,             // a worker, the monitor, the timekeeper, one for blocking calls
  signal_stack,       // mmap of a thread's alternate signal stack
  membarrier,         // registering for it
  sleep,              // a futex wait: it returns early
  submission,         // an entry of io_uring's submission queue: there is no room, and the kernel makes none
  io_sleep,           // io_uring_enter that waits: it returns early
  file_sync,          // fsync by a thread that blocks
  io_uring,           // io_uring_setup: a container forbids it
  epoll,              // epoll_create1
  processor,          // which others have while a thread would like to run
  granted_lock,       // each wait for it counts a thousand times, also one for a party that does not use it
};
inline constexpr unsigned fault_count = 17;

// What input and output may do by their contract although nothing is wrong, and rarely do. When: drawn from a seed.
enum class io_fault : unsigned char {
  again,         // an attempt ends with EAGAIN or EINTR although it could have succeeded
  order,         // completions are handed out late and in another order
  small_queues,  // io_uring is made with queues of a few entries
  short_count,   // a stream transfers fewer bytes than it could have
};
inline constexpr unsigned io_fault_count = 4;

}  // namespace ramie::platform

#if defined(RAMIE_HOOKS)
#include <ramie/platform/faults_on.hpp>
#else
#include <ramie/platform/faults_off.hpp>
#endif
