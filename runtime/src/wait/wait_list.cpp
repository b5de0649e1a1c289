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

void wait_list::add_before(waiter& node, waiter& successor) noexcept {
  node.previous = successor.previous;
  node.next = &successor;
  if (node.previous != nullptr) {
    node.previous->next = &node;
  } else {
    first_.set(&node);
  }
  successor.previous = &node;
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

}  // namespace ramie::detail
