// SPDX-License-Identifier: BSL-1.0
// The line of those who wait for a lock or a signal, and the protocol that all of them share.
//
//   M1  Each of these objects is one word and one line. A bit of the word, `waiting`, is set if, and only if, somebody
//       is listed: it is changed with the line held. Whoever finds it clear needs the word alone; whoever finds it set
//       and has something to hand over takes the line.
//   M2  A waiter lists itself by setting the bit in the same RMW that finds its wait still needed, with the line held.
//       So what comes later finds the bit.
//   M3  Waiters are listed in the order in which they first came; one that was woken for nothing keeps its place.
//   M4  Whoever hands something over claims under the line, and completes without it. The claimed one can't run before
//       that, and who was listed but could not be claimed takes the line before it leaves: so while an object has
//       listed waiters, whoever holds its line may touch it, although what was handed over makes others think that
//       they are the last. With nobody listed, the RMW on the word is the last touch. An object may therefore be
//       destroyed as soon as nobody is inside one of its waits and what it was for has happened.
#pragma once

#include <cstdint>

#include <ramie/detail/line.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

struct line_waiter : waiter {
  std::uint64_t place = 0;  // 0: never listed
  bool passed = false;  // it was listed when all were let pass: under the line, or by its fiber after it unpublished
};

// Holds the line. Never across a switch, nor while somebody is completed.
class line_guard {
 public:
  explicit line_guard(line& l) noexcept : line_(taken(l)), waiters_(l.first, l.last) {}
  ~line_guard() {
    line_.first = waiters_.first();
    line_.last = waiters_.last();
    line_.busy.store(false, std::memory_order_release);  // pairs with the exchange of the next
  }
  line_guard(const line_guard&) = delete;
  line_guard& operator=(const line_guard&) = delete;

  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
  template <class Waiter = waiter>
  [[nodiscard]] Waiter* first() const noexcept {
    return static_cast<Waiter*>(waiters_.first());
  }
  template <class Waiter = waiter>
  [[nodiscard]] Waiter* claim_first() noexcept {
    return static_cast<Waiter*>(waiters_.claim_first());
  }
  [[nodiscard]] bool claim_listed_first(waiter& first) noexcept { return waiters_.claim_listed_first(first); }
  void remove(waiter& node) noexcept { waiters_.remove(node); }

  void list(line_waiter& node) noexcept {
    if (node.place == 0) {
      node.place = ++line_.places;
      return waiters_.add(node);
    }
    waiter* successor = waiters_.first();
    while (successor != nullptr && static_cast<line_waiter*>(successor)->place < node.place) {
      successor = successor->next;
    }
    successor != nullptr ? waiters_.add_before(node, *successor) : waiters_.add(node);
  }

 private:
  static line& taken(line& l) noexcept {
    while (l.busy.exchange(true, std::memory_order_acquire)) {  // pairs with the release of the last holder
      for (platform::backoff turn; l.busy.load(std::memory_order_relaxed);) turn.wait();
    }
    return l;
  }

  line& line_;
  wait_list waiters_;
};

// Claimed waiters that are told once the line is free: declare it before the guard.
class tell_later {
 public:
  tell_later() noexcept = default;
  ~tell_later() {
    while (first_ != nullptr) {
      waiter* const node = first_;
      first_ = node->next;
      complete(*node->who);  // the node is gone after this
    }
  }
  tell_later(const tell_later&) = delete;
  tell_later& operator=(const tell_later&) = delete;

  void add(waiter& claimed, std::uint32_t outcome = 1) noexcept {
    claimed.outcome = outcome;
    claimed.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &claimed;
    last_ = &claimed;
  }
  // Everybody who is listed passes; also who can't be claimed because it is just awake for another reason: it looks.
  void let_all_pass(line_guard& of) noexcept {
    while (auto* const node = of.first<line_waiter>()) {
      node->passed = true;
      if (of.claim_listed_first(*node)) add(*node);
    }
  }

 private:
  waiter* first_ = nullptr;
  waiter* last_ = nullptr;
};

}  // namespace ramie::detail
