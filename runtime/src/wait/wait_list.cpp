// SPDX-License-Identifier: BSL-1.0
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

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
