// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/clock.hpp>

#include <ramie/platform/fatal.hpp>

namespace ramie::platform {

void virtual_clock::advance(nanoseconds by) noexcept {
  if (by.count() < 0) fatal("virtual_clock::advance by a negative time. Time only goes forward.");
  elapsed_.fetch_add(by.count(), std::memory_order_acq_rel);  // pairs with the acquire in now()
  tell_listeners();
}

void virtual_clock::advance_to(time_point when) noexcept {
  const auto target = nanoseconds(when.time_since_epoch()).count();
  auto before = elapsed_.load(std::memory_order_relaxed);
  while (before < target && !elapsed_.compare_exchange_weak(before, target, std::memory_order_acq_rel)) {
  }
  tell_listeners();
}

void virtual_clock::tell_listeners() noexcept {
  std::lock_guard hold(mutex_);
  for (clock_listener* const l : listeners_) l->time_passed();
}

bool virtual_clock::subscribe(clock_listener& listener) {
  std::lock_guard hold(mutex_);
  if (advances_itself && !listeners_.empty()) return false;
  listeners_.push_back(&listener);
  return true;
}

void virtual_clock::unsubscribe(clock_listener& listener) noexcept {
  std::lock_guard hold(mutex_);
  std::erase(listeners_, &listener);
}

}  // namespace ramie::platform
