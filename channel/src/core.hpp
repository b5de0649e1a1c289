// SPDX-License-Identifier: BSL-1.0
// The inside of a channel: a buffer, two lists of waiters, and one lock over all of it.
//
// Invariants, under the lock
//   C1  OPEN -> CLOSED once, never back (close's linearization point). A send is admitted iff it finds OPEN when it
//       claims a receiver, takes a slot, or lists itself; so after CLOSED nobody is listed any more.
//   C2  Elements are received in the order: buffer, behind the buffer, waiting senders in the order they came.
//   C3  If a receiver that can be claimed is listed, there is nothing to receive; if a sender that can be claimed is
//       listed, the buffer is full. (Exceptions: the two sides of one select, which can't meet themselves; and a sender
//       on a CLOSED channel between close's two steps.) Listed nodes may be stale: their fiber was woken by
//       somebody else, and will unlist itself; claiming it fails and drops it.
//   C4  A partner is claimed, then its element is moved, under the lock; then it is told, without the lock
//       (will_tell). From claim to complete its node is the claimer's.
//   C5  A move that throws leaves the channel as it was. A partner claimed for it is woken without an outcome and goes
//       back to its place in the list; the exception is the caller's, or, when the caller only helps a waiting
//       sender into the buffer, that sender's, which tries again by itself. Whoever is woken for nothing keeps its
//       place, too: lists are ordered by when a waiter was first listed. While it is away, those behind it may be
//       served.
//   C6  After CLOSED and close's second step no sender is listed: each was moved behind the buffer, or got its
//       element back. (A sender that is just then awake for nothing is not listed: it is refused when it comes back,
//       and has its element.)
//
// Rejected: a lock-free ring with sequence numbers per slot (seed 002). Rendezvous first, an exact moment of closing
// and select all need the buffer and both lists in one step; and two RMWs an element are more than the one of the lock,
// which mostly is none (biased_lock.hpp). See spec/decisions/008-channels.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include <ramie/detail/channel_core.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/biased_lock.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/here.hpp>
#include <ramie/runtime/wait.hpp>

#include "element_ring.hpp"
#include "hooks.hpp"

namespace ramie::detail {

// How an attempt went; also the outcome in a waiter's node, where `none` is "not yet".
enum class meeting : std::uint32_t { none = 0, done = 1, closed = 2 };

// An operation that waits. For a select, one of its cases: then the select's own node is told, too.
struct channel_waiter : waiter {
  channel_waiter(void* what, bool is_sender) noexcept : element(what), sends(is_sender) {}

  void* element;  // a T to move from, or a landing
  bool sends;
  std::uint64_t place = 0;    // in its list, kept when it is listed again; 0: not listed yet
  waiter* select = nullptr;   // whose `outcome` is set to `case_number`
  std::uint32_t case_number;  // from 1

  void settle(meeting how) noexcept {
    outcome = static_cast<std::uint32_t>(how);
    if (select != nullptr) select->outcome = case_number;
  }
  [[nodiscard]] meeting how() const noexcept { return static_cast<meeting>(outcome); }
};

// Claimed partners that have to be told once the lock is released: declare it before the guard.
class will_tell {
 public:
  will_tell() noexcept = default;
  explicit will_tell(channel_core& at) noexcept : at_(&at) {}
  ~will_tell() {
    if (first_ != nullptr) tell_all();
  }
  will_tell(const will_tell&) = delete;
  will_tell& operator=(const will_tell&) = delete;
  void add(waiter& node) noexcept {
    node.next = nullptr;
    (first_ == nullptr ? first_ : last_->next) = &node;
    last_ = &node;
  }

 private:
  RAMIE_ALWAYS_INLINE void tell_all() noexcept {
    if (at_ != nullptr) reach(channel_moment::will_complete, *at_);
    for (waiter* node = first_; node != nullptr;) {
      waiter* const next = node->next;
      complete(*node->who);  // the node is gone after this
      node = next;
    }
  }

  channel_core* at_ = nullptr;  // for the hooks
  waiter* first_ = nullptr;
  waiter* last_;
};

class channel_core final : public waitable {
 public:
  channel_core(const element_ops& ops, void* slots, std::size_t capacity) noexcept
      : word_(ops.store == nullptr && (ops.size == 8 || ops.size == 4) ? static_cast<std::uint8_t>(ops.size) : 0),
        ops_(ops) {
    buffer_.use(slots, capacity, ops);
    behind_.use(nullptr, 0, ops);
  }
  ~channel_core();

  // With the lock.
  [[nodiscard]] RAMIE_ALWAYS_INLINE meeting try_send(void* element, will_tell& later);
  [[nodiscard]] RAMIE_ALWAYS_INLINE meeting try_recv(void* to, will_tell& later);
  [[nodiscard]] meeting attempt(channel_waiter& node, will_tell& later) {
    return node.sends ? try_send(node.element, later) : try_recv(node.element, later);
  }
  RAMIE_ALWAYS_INLINE void list(channel_waiter& node) noexcept {
    if (node.place != 0) [[unlikely]]
      return list_again(node);
    node.place = ++places_;
    (node.sends ? senders_ : receivers_).add(node);
  }
  void unlist(channel_waiter& node) noexcept { (node.sends ? senders_ : receivers_).remove(node); }

  // The commonest operations, in few instructions: a fiber that need not look around, the lock granted to its worker,
  // an element that is a word; the buffer and nobody else, or one partner that waits for nothing else. False: nothing
  // has happened.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool push_quickly(const void* element) noexcept;
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool pop_quickly(void* to) noexcept;
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool give_quickly(const void* element) noexcept;
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool get_quickly(void* to) noexcept;

  // Without it.
  [[nodiscard]] bool receivers_wait() const noexcept { return !receivers_.empty(); }
  [[nodiscard]] bool senders_wait() const noexcept { return !senders_.empty(); }
  [[nodiscard]] bool has_room() const noexcept { return !buffer_.full(); }
  [[nodiscard]] bool has_some() const noexcept { return buffer_.count() != 0; }
  [[nodiscard]] bool may_send() const noexcept {
    return closed_.load(std::memory_order_relaxed) || !receivers_.empty() || !buffer_.full();
  }
  [[nodiscard]] bool may_recv() const noexcept {
    return buffer_.count() != 0 || !senders_.empty() || closed_.load(std::memory_order_relaxed);
  }
  bool close(std::exception_ptr why) noexcept;
  void abandon() noexcept;
  void rethrow();
  [[nodiscard]] std::size_t len() const noexcept { return buffer_.count() + behind_.count(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return buffer_.capacity(); }
  // Acquire: who sees it closed sees what was done before the close.
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  [[nodiscard]] const element_ops& ops() const noexcept { return ops_; }

  bool try_complete(waiter&) override { return false; }  // publish does, under the lock it takes anyway
  bool publish(waiter& node) override;
  void unpublish(waiter& node) noexcept override;

 private:
  template <class Step>
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool quickly(Step step) noexcept;
  template <class Step>
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool meet_quickly(wait_list& partners, Step step) noexcept;
  [[nodiscard]] bool publish_slowly(channel_waiter& node);
  void list_again(channel_waiter& node) noexcept;
  RAMIE_ALWAYS_INLINE void hand_over(void* to, void* from) const {
    if (ops_.store == nullptr) [[likely]] {
      copy_bytes(to, from, ops_.size);
    } else {
      ops_.deliver(to, from);
    }
  }
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool meet(wait_list& partners, void* mine, will_tell& later);
  void refill(will_tell& later) noexcept;
  void shelter_senders(element_ring& shelter, will_tell& later) noexcept;
  void refuse_receivers(will_tell& later) noexcept;

  // The first cache line is all that a hand-over to or from a waiting partner needs, the second what listing oneself
  // and a buffer need.
  platform::atomic<bool> closed_{false};  // written under the lock
  const std::uint8_t word_;               // the size of an element that is a word of 4 or 8 bytes, else 0
  wait_list receivers_;
  wait_list senders_;

 public:
  platform::biased_lock lock;

 private:
  std::uint64_t places_ = 0;  // given to waiters
  element_ring buffer_;
  element_ring behind_;  // what waiting senders left at the close
  const element_ops& ops_;
  std::exception_ptr why_closed_;  // set before closed_, read after

 public:
  platform::atomic<std::uint32_t> references{1};
  platform::atomic<std::uint32_t> sender_ends{0};
  platform::atomic<std::uint32_t> receiver_ends{0};
};

// Claims the first of the partners, moves the element from or to its variable, and will tell it. C5 if the move throws.
RAMIE_ALWAYS_INLINE bool channel_core::meet(wait_list& partners, void* mine, will_tell& later) {
  auto* const node = static_cast<channel_waiter*>(partners.claim_first());
  if (node == nullptr) return false;
  later.add(*node);
  if (node->sends) {
    hand_over(mine, node->element);
  } else {
    hand_over(node->element, mine);
  }
  node->settle(meeting::done);
  return true;
}

RAMIE_ALWAYS_INLINE meeting channel_core::try_send(void* element, will_tell& later) {
  if (closed_.load(std::memory_order_relaxed)) [[unlikely]]
    return meeting::closed;
  if (!receivers_.empty() && meet(receivers_, element, later)) return meeting::done;
  if (buffer_.full()) return meeting::none;
  buffer_.push(element);
  return meeting::done;
}

RAMIE_ALWAYS_INLINE meeting channel_core::try_recv(void* to, will_tell& later) {
  if (buffer_.count() != 0) {
    buffer_.pop(to);
    if (!senders_.empty()) refill(later);
    return meeting::done;
  }
  if (behind_.count() != 0) [[unlikely]] {
    behind_.pop(to);
    return meeting::done;
  }
  if (!senders_.empty() && meet(senders_, to, later)) return meeting::done;
  return closed_.load(std::memory_order_relaxed) ? meeting::closed : meeting::none;
}

template <class Step>
RAMIE_ALWAYS_INLINE bool channel_core::quickly(Step step) noexcept {
  const whereabouts at = look_around();
  if (at.self == nullptr || word_ == 0 || !quiet(at)) [[unlikely]]
    return false;
  if (!lock.enter_granted(&at.desk->party)) [[unlikely]]
    return false;
  const bool done = step();
  lock.leave_granted(&at.desk->party);
  if (done) [[likely]]
    spend_one(at);
  return done;
}

// With the first of the partners, unless it is stale or one of a select's cases. It is told after the lock.
template <class Step>
RAMIE_ALWAYS_INLINE bool channel_core::meet_quickly(wait_list& partners, Step step) noexcept {
  fiber* partner = nullptr;
  const bool done = quickly([this, &partners, &partner, step]() RAMIE_FLATTEN_LAMBDA {
    auto* const first = static_cast<channel_waiter*>(partners.first());
    if (first == nullptr || first->select != nullptr || closed_.load(std::memory_order_relaxed)) return false;
    if (!partners.claim_listed_first(*first)) [[unlikely]]
      return false;
    step(*first);
    first->outcome = static_cast<std::uint32_t>(meeting::done);
    partner = first->who;
    return true;
  });
  if (!done) [[unlikely]]
    return false;
  reach(channel_moment::will_complete, *this);
  complete(*partner);
  return true;
}

RAMIE_ALWAYS_INLINE bool channel_core::push_quickly(const void* element) noexcept {
  return quickly([this, element]() RAMIE_FLATTEN_LAMBDA {
    if (closed_.load(std::memory_order_relaxed) || !receivers_.empty() || buffer_.full()) return false;
    buffer_.push_word(element, word_);
    return true;
  });
}

RAMIE_ALWAYS_INLINE bool channel_core::pop_quickly(void* to) noexcept {
  return quickly([this, to]() RAMIE_FLATTEN_LAMBDA {
    if (buffer_.count() == 0 || !senders_.empty()) return false;
    buffer_.pop_word(to, word_);
    return true;
  });
}

RAMIE_ALWAYS_INLINE bool channel_core::give_quickly(const void* element) noexcept {
  return meet_quickly(receivers_, [this, element](const channel_waiter& receiver)
                                      RAMIE_FLATTEN_LAMBDA { copy_word(receiver.element, element, word_); });
}

RAMIE_ALWAYS_INLINE bool channel_core::get_quickly(void* to) noexcept {
  return meet_quickly(senders_, [this, to](const channel_waiter& sender) RAMIE_FLATTEN_LAMBDA {
    if (buffer_.count() == 0) {
      copy_word(to, sender.element, word_);
    } else {
      buffer_.pop_word(to, word_);
      buffer_.push_word(sender.element, word_);
    }
  });
}

[[nodiscard]] inline const platform::lock_party* party_of(const whereabouts& at) noexcept {
  return at.desk != nullptr ? &at.desk->party : nullptr;
}
using channel_guard = platform::biased_lock::guard;

}  // namespace ramie::detail
