// SPDX-License-Identifier: BSL-1.0
// Timers in their exact order: a pairing heap of nodes that live elsewhere. For the few that a wheel's tick is too
// coarse for. A leaf: nothing is allocated, nothing locked. Insert O(1), remove and pop O(log n), amortised.
//
// Each node has a list of children, none of which is earlier. `link` points to whatever points to the node: the root,
// its parent's `child`, or its elder sibling's `next`.
#pragma once

#include <chrono>
#include <utility>

#include <ramie/runtime/timer_wheel.hpp>

namespace ramie::detail {

struct exact_node : timer_node {
  std::chrono::steady_clock::time_point when{};
  timer_node* child = nullptr;
};

class timer_heap {
 public:
  timer_heap() noexcept = default;
  timer_heap(const timer_heap&) = delete;
  timer_heap& operator=(const timer_heap&) = delete;

  [[nodiscard]] bool empty() const noexcept { return root_ == nullptr; }
  // The earliest, or null.
  [[nodiscard]] exact_node* first() const noexcept { return static_cast<exact_node*>(root_); }

  void insert(exact_node& node) noexcept {
    node.child = nullptr;
    node.next = nullptr;
    set_root(meld(first(), &node));
  }

  // The node is in this heap.
  void remove(exact_node& node) noexcept {
    exact_node* const rest = pair_up(static_cast<exact_node*>(node.child));
    if (&node == root_) {
      set_root(rest);
    } else {
      timer_list::remove(node);
      set_root(meld(first(), rest));
    }
    node.link = nullptr;
    node.child = nullptr;
  }

 private:
  void set_root(exact_node* node) noexcept {
    root_ = node;
    if (node == nullptr) return;
    node->next = nullptr;
    node->link = &root_;
  }

  // Of two roots, the later becomes a child of the earlier. Either may be null.
  static exact_node* meld(exact_node* a, exact_node* b) noexcept {
    if (a == nullptr || b == nullptr) return a == nullptr ? b : a;
    if (b->when < a->when) std::swap(a, b);
    b->next = a->child;
    if (a->child != nullptr) a->child->link = &b->next;
    a->child = b;
    b->link = &a->child;
    return a;
  }

  // Siblings two by two, then all into one, from the last to the first.
  static exact_node* pair_up(exact_node* siblings) noexcept {
    exact_node* pairs = nullptr;
    while (siblings != nullptr) {
      exact_node* const one = siblings;
      auto* const other = static_cast<exact_node*>(one->next);
      siblings = other != nullptr ? static_cast<exact_node*>(other->next) : nullptr;
      exact_node* const both = meld(one, other);
      both->next = pairs;
      pairs = both;
    }
    exact_node* all = nullptr;
    while (pairs != nullptr) {
      auto* const following = static_cast<exact_node*>(pairs->next);
      all = meld(all, pairs);
      pairs = following;
    }
    return all;
  }

  timer_node* root_ = nullptr;
};

}  // namespace ramie::detail
