// SPDX-License-Identifier: BSL-1.0
#include <ramie/runtime/wait.hpp>

namespace ramie::runtime_internal {

void wait_list::add_again(ordered_waiter& node) noexcept {
  waiter* successor = first_.get();
  while (successor != nullptr && static_cast<ordered_waiter*>(successor)->place < node.place) {
    successor = successor->next;
  }
  if (successor == nullptr) return add(node);
  node.previous = successor->previous;
  node.next = successor;
  if (node.previous != nullptr) {
    node.previous->next = &node;
  } else {
    first_.set(&node);
  }
  successor->previous = &node;
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

}  // namespace ramie::runtime_internal
