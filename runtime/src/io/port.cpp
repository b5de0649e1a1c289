// SPDX-License-Identifier: BSL-1.0
#include "port.hpp"

#include <string>

#include <ramie/runtime/report.hpp>

#include "request.hpp"

namespace ramie::detail {

std::unique_ptr<platform::io_backend> io_setup::make() {
  std::string passed_over;
  auto made = platform::make_io_backend(static_cast<platform::io_mechanism>(wanted_), passed_over);
  if (!passed_over.empty() && !told_.exchange(true, std::memory_order_relaxed)) {
    report_io_fallback(passed_over, to_string(made->mechanism()));
  }
  return made;
}

void io_port::open(io_setup& how) {
  backend_ = how.make();
  opened_.store(backend_.get(), std::memory_order_release);
}

void io_port::complete(batch& done) noexcept {
  for (std::size_t i = 0; i < done.count; ++i) static_cast<io_request*>(done.ready[i]->owner)->complete();
  done.count = 0;
}

bool io_port::turn(platform::io_backend& b) noexcept {
  batch done;
  for (std::size_t i = 0; i < batches_a_turn; ++i) {
    done.count = b.poll(done.ready);
    if (done.count == 0) return i != 0;
    const bool more = done.count == batch::room;
    complete(done);
    if (!more) break;
  }
  return true;
}

bool io_port::turn() noexcept {
  return turn(*backend_);
}

bool io_port::help() noexcept {
  platform::io_backend* const b = at_any_time();
  if (b == nullptr || b->under_way() == 0) return false;
  (void)turn(*b);
  return true;
}

void io_port::sleep(platform::thread_parker& parker, platform::time_point until, batch& done) noexcept {
  asleep_.store(true, std::memory_order_relaxed);  // 1
  platform::full_fence();                          // 2
  if (!parker.park_until(platform::time_point::min())) done.count = backend_->wait(done.ready, until);  // 3, 4
  asleep_.store(false, std::memory_order_relaxed);
  (void)parker.park_until(platform::time_point::min());  // what it was woken with
}

}  // namespace ramie::detail
