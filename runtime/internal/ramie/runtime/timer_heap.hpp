// SPDX-License-Identifier: BSL-1.0
// Timers in their exact order: an intrusive pairing heap, for the few timers for which a wheel's tick is too coarse. A
// leaf: nothing is allocated, nothing locked. Insert O(1), remove and pop O(log n), amortised.
//
// Each node has a list of children, none of which is earlier; `aside` is the first of them. `link` is the address of
// the pointer to the node: the root, its parent's `aside`, or its elder sibling's `next`.
#pragma once

#include <utility>

#include <ramie/runtime/timer_wheel.hpp>

namespace ramie::runtime_internal {

class timer_heap {
 public:
  timer_heap() noexcept = default;
  timer_heap(const timer_heap&) = delete;
  timer_heap& operator=(const timer_heap&) = delete;

  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  // The earliest, or null.
  [[nodiscard]] timer_node* first() const noexcept { return root_; }

  void insert(timer_node& node) noexcept {
    node.aside = nullptr;
    node.next = nullptr;
    set_root(meld(first(), &node));
  }

  // The node is in this heap.
  void remove(timer_node& node) noexcept {
    timer_node* const rest = pair_up(node.aside);
    if (&node == root_) {
      set_root(rest);
    } else {
      timer_list::remove(node);
      set_root(meld(first(), rest));
    }
    node.link = nullptr;
    node.aside = nullptr;
  }

 private:
  void set_root(timer_node* node) noexcept {
    root_ = node;
    if (node == nullptr) return;
    node->next = nullptr;
    node->link = &root_;
  }

  // Of two roots, the later becomes a child of the earlier. Either may be null.
  static timer_node* meld(timer_node* a, timer_node* b) noexcept {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    if (b->when < a->when) std::swap(a, b);
    b->next = a->aside;
    if (a->aside != nullptr) a->aside->link = &b->next;
    a->aside = b;
    b->link = &a->aside;
    return a;
  }

  // Siblings two by two, then all into one, from the last to the first.
  static timer_node* pair_up(timer_node* siblings) noexcept {
    timer_node* pairs = nullptr;
    while (siblings != nullptr) {
      timer_node* const one = siblings;
      auto* const other = one->next;
      siblings = other != nullptr ? other->next : nullptr;
      timer_node* const both = meld(one, other);
      both->next = pairs;
      pairs = both;
    }
    timer_node* all = nullptr;
    while (pairs != nullptr) {
      auto* const following = pairs->next;
      all = meld(all, pairs);
      pairs = following;
    }
    return all;
  }

  timer_node* root_ = nullptr;
};

}  // namespace ramie::runtime_internal
