// SPDX-License-Identifier: BSL-1.0
#include "driver.hpp"

#include <cerrno>
#include <new>
#include <system_error>

#include "../sched/scheduler.hpp"

namespace ramie::runtime_internal {

int io_driver::prepare(worker& w, platform::time_point until) noexcept {
  try {
    if (!w.io.is_open()) open_port(w);
    if (until != timekeeper::never) sched_.deadlines.prepare();  // after it has begun there is no way back
    return 0;
  } catch (const std::system_error& e) {
    return e.code().value() == EAGAIN ? -ENOMEM : -e.code().value();  // no thread: nothing that comes by waiting
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

void io_driver::open_port(worker& w) {
  w.io.open(setup_);
  if (!w.pool.elastic() && !watched_.exchange(true, std::memory_order_relaxed)) w.pool.let_monitor_be_woken();
}

void io_driver::begun(worker& w) noexcept {
  w.pool.wake_monitor();
}

bool io_driver::poll(worker& w) noexcept {
  return w.io.busy() && w.io.poll(run_queues::ring_free_slots(w));
}

bool io_driver::poll_all(worker& w) noexcept {
  return w.io.busy() && w.io.poll(io_port::most_per_poll);
}

void io_driver::park(worker& w, platform::time_point until, completions& brought) noexcept {
  if (w.io.busy()) {
    w.io.sleep(w.parker, until, brought.done_);
  } else if (until == timekeeper::never) {
    w.parker.park();
  } else {
    (void)w.parker.park_until(until);
  }
}

}  // namespace ramie::runtime_internal
