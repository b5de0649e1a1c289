// SPDX-License-Identifier: BSL-1.0
#include "wake.hpp"

#include "../sched/hot.hpp"

namespace ramie::detail {

void enqueue(fiber& f) noexcept {
  if (f.is_proxy()) {
    static_cast<proxy_fiber&>(f).parker.unpark();
    return;
  }
  worker* const w = this_worker();
  if (w != nullptr && &w->sched == f.owner) {
    w->sched.schedule_on(*w, f);
  } else {
    f.owner->schedule_outside(f);
  }
}

bool claim(waiter& node) noexcept {
  return node.who->word.claim(static_cast<std::uint16_t>(node.ticket)) == claim_result::won;
}

void complete(fiber& who) noexcept {
  if (who.word.complete() == complete_result::must_enqueue) enqueue(who);
}

void fiber_wake(fiber& f, std::uint64_t ticket) noexcept {
  // The 64-bit ticket first: 16 bits alone come round again within milliseconds.
  if (f.wait_ticket.load(std::memory_order_acquire) != ticket) return;
  if (f.word.wake(static_cast<std::uint16_t>(ticket)) == wake_result::must_enqueue) enqueue(f);
}

void waker::wake() const noexcept {
  if (who_ != nullptr) fiber_wake(*who_, ticket_);
}

void wake_for_cancel(fiber& f) noexcept {
  const auto now = f.word.load();
  if (f.word.wake(now.ticket(), word_view::cancel_seen) == wake_result::must_enqueue) enqueue(f);
}

void wait_list::add(waiter& node) noexcept {
  node.previous = last_;
  node.next = nullptr;
  if (last_ != nullptr) {
    last_->next = &node;
  } else {
    first_.set(&node);
  }
  last_ = &node;
  node.listed = true;
}

void wait_list::add_in_front(waiter& node) noexcept {
  waiter* const second = first_.get();
  node.previous = nullptr;
  node.next = second;
  (second != nullptr ? second->previous : last_) = &node;
  first_.set(&node);
  node.listed = true;
}

void wait_list::remove(waiter& node) noexcept {
  if (!node.listed) return;
  if (node.previous != nullptr) {
    node.previous->next = node.next;
  } else {
    first_.set(node.next);
  }
  (node.next != nullptr ? node.next->previous : last_) = node.previous;
  node.listed = false;
}

waiter* wait_list::claim_first() noexcept {
  while (waiter* const node = first_.get()) {
    remove(*node);
    if (claim(*node)) return node;
  }
  return nullptr;
}

}  // namespace ramie::detail
