// SPDX-License-Identifier: BSL-1.0
#include "port.hpp"

#include <algorithm>
#include <span>
#include <string>

#include <ramie/runtime/report.hpp>

#include "request.hpp"

namespace ramie::runtime_internal {

std::unique_ptr<platform::io_backend> io_setup::make() {
  std::string passed_over;
  auto made = platform::make_io_backend(static_cast<platform::io_mechanism>(wanted_), passed_over);
  if (!passed_over.empty() && !fallback_reported_.exchange(true, std::memory_order_relaxed)) {
    report_io_fallback(passed_over, to_string(made->mechanism()));
  }
  return made;
}

void io_port::open(io_setup& how) {
  owned_ = how.make();
  backend_.store(owned_.get(), std::memory_order_release);  // pairs with the acquire in backend()
}

void io_port::complete(batch& done) noexcept {
  for (std::size_t i = 0; i < done.count; ++i) static_cast<io_request*>(done.ready[i]->owner)->complete();
  done.count = 0;
}

bool io_port::poll(platform::io_backend& b, std::size_t limit) noexcept {
  if (limit == 0) b.flush();
  batch done;
  bool some = false;
  while (limit > 0) {
    const std::size_t wanted = std::min(limit, batch::capacity);
    done.count = b.poll(std::span(done.ready).first(wanted));
    limit -= done.count;
    some = some || done.count != 0;
    const bool more = done.count == wanted;
    complete(done);
    if (!more) break;
  }
  return some;
}

bool io_port::poll(std::size_t limit) noexcept {
  polls_.store(polls_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return poll(*backend(), limit);
}

bool io_port::poll_for_owner() noexcept {
  platform::io_backend* const b = backend();
  if (b == nullptr || b->under_way() == 0) return false;
  (void)poll(*b, most_per_poll);
  return true;
}

void io_port::sleep(platform::thread_parker& parker, platform::time_point until, batch& done) noexcept {
  const auto take_token = [&parker] { return parker.park_until(platform::time_point::min()); };
  sleep_flag_.sleep(take_token, [&] { done.count = backend()->wait(done.ready, until); });
  (void)take_token();  // what it was woken with
}

}  // namespace ramie::runtime_internal
