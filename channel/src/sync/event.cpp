// SPDX-License-Identifier: BSL-1.0
// The word of an event: `happened`, and `waiting` (line.hpp, M1). Never both.
#include <ramie/event.hpp>

#include <ramie/runtime/budget.hpp>

#include "line.hpp"
#include "owner.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_event{"event wait"};
const wait_reason waits_for_event_until{"event wait, with a deadline"};

constexpr std::uint32_t happened = 1, waiting = 2;

bool has_happened(const event_core& e) noexcept {
  return (e.word.load(std::memory_order_acquire) & happened) != 0;  // pairs with the release of event_set
}

class event_waitable final : public waitable {
 public:
  explicit event_waitable(event_core& e) noexcept : event_(e) {}
  bool try_complete(waiter& node) override { return static_cast<line_waiter&>(node).passed || has_happened(event_); }
  bool publish(waiter& node) override {
    line_guard hold(event_.waiters);
    auto seen = event_.word.load(std::memory_order_acquire);
    do {
      if ((seen & happened) != 0) return false;
    } while (!event_.word.compare_exchange_weak(seen, waiting, std::memory_order_acquire, std::memory_order_acquire));
    hold.list(static_cast<line_waiter&>(node));
    return true;
  }
  void unpublish(waiter& node) noexcept override {
    line_guard hold(event_.waiters);
    hold.remove(node);
    if (hold.empty()) event_.word.fetch_and(~waiting, std::memory_order_relaxed);
  }

 private:
  event_core& event_;
};

// False: nobody waits any more (line.hpp, M4).
bool let_all_go(event_core& e) noexcept {
  tell_later later;
  line_guard hold(e.waiters);
  if (e.word.load(std::memory_order_relaxed) != waiting) return false;
  later.let_all_pass(hold);
  e.word.store(happened, std::memory_order_release);
  return true;
}

}  // namespace

void event_set(event_core& e) noexcept {
  for (auto seen = e.word.load(std::memory_order_relaxed);;) {
    if (seen == waiting) {
      if (let_all_go(e)) return;
      seen = e.word.load(std::memory_order_relaxed);
    } else if (e.word.compare_exchange_weak(seen, happened, std::memory_order_release, std::memory_order_relaxed)) {
      return;  // also over itself: who waits sees what all who set it did
    }
  }
}

void event_reset(event_core& e) noexcept {
  e.word.fetch_and(~happened, std::memory_order_acq_rel);
}

void event_wait(event_core& e) {
  whereabouts at = look_around();
  begin_operation(at);
  if (has_happened(e)) return;
  event_waitable on(e);
  line_waiter node;
  (void)fiber_wait(on, node, waits_for_event);
}

bool event_wait_until(event_core& e, sync_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (has_happened(e)) return true;
  event_waitable on(e);
  line_waiter node;
  return fiber_wait_until(on, node, waits_for_event_until, deadline) != wait_result::timed_out;
}

void event_destroyed(const event_core&) noexcept {
  if constexpr (platform::debug_checks) {
    misused(look_around(), "destroys a ramie::event that others wait for", "It must outlive all who wait for it.");
  }
}

}  // namespace ramie::detail
