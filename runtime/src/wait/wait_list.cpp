// SPDX-License-Identifier: BSL-1.0
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

void complete_all(waiter* claimed) noexcept {
  while (claimed != nullptr) {
    waiter* const node = claimed;
    claimed = node->next;
    node->outcome = 1;
    complete(*node->who);  // the node is gone after this
  }
}

void wait_list::add(waiter& node) noexcept {
  add_before(node, nullptr);
}

void wait_list::add_before(waiter& node, waiter* successor) noexcept {
  waiter*& from_behind = successor != nullptr ? successor->previous : last_;
  node.previous = from_behind;
  node.next = successor;
  if (node.previous != nullptr) {
    node.previous->next = &node;
  } else {
    first_.set(&node);
  }
  from_behind = &node;
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
