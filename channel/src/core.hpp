// SPDX-License-Identifier: BSL-1.0
// The core of a channel: a buffer, a list of waiting senders, a list of waiting receivers, and one lock over all of it.
//
// Invariants, under the lock (all clauses: spec/channels.md)
//   C1  OPEN -> CLOSED once, never back (close's linearization point). A send is admitted iff it finds OPEN when it
//       claims a receiver, takes a slot, or lists itself; so after CLOSED no waiter lists itself any more.
//   C2  Elements are received in the order: buffer, leftovers, waiting senders in the order they came. (Leftovers are
//       the elements of senders that were waiting when the channel was closed.)
//   C3  If a receiver that can be claimed is listed, there is nothing to receive; if a sender that can be claimed is
//       listed, the buffer is full. (Exceptions: the two sides of one select, which can't meet itself; and a sender
//       on a CLOSED channel between close's two steps.) Listed nodes may be stale: their fiber was woken for another
//       reason, and will unlist itself; claiming it fails and drops the node.
//   C4  A partner is claimed, then its element is moved, under the lock; then it is completed, without the lock
//       (channel_wakes). From claim to complete its node belongs to the claimer.
//   C5  A move that throws leaves the channel as it was. A partner claimed for it is completed without an outcome and
//       lists itself again in its old place. The exception goes to the caller; but if the caller was only moving a
//       waiting sender's element into the buffer, that sender repeats the move itself and gets the exception. Every
//       waiter that is woken without an outcome keeps its place: lists are ordered by when a waiter was first listed.
//       While it is awake, those behind it may be served.
//   C6  After CLOSED and close's second step no sender is listed: each element became a leftover, or stayed with its
//       sender. (A sender that is awake without an outcome at that moment is not listed: it is refused when it lists
//       itself again, and has its element.)
//
// Rejected: a lock-free ring with sequence numbers per slot. Direct hand-over to a waiting partner, an exact moment of
// closing and select all need the buffer and both lists in one step; and two RMWs an element are more than the one of
// the lock, which mostly is none (biased_lock.hpp). See spec/decisions/008-channels.md.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>

#include <ramie/detail/channel_core.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/biased_lock.hpp>
#include <ramie/runtime/current.hpp>
#include <ramie/runtime/wait.hpp>

#include "element_ring.hpp"
#include "hooks.hpp"

namespace ramie::channel_internal {

using namespace runtime_internal;

// A send or a receive that waits; for a select, one of its cases. Its outcome is a channel_status plus 1.
struct channel_waiter : ordered_waiter {
  channel_waiter(void* what, bool is_sender) noexcept : element(what), sends(is_sender) {}

  void* element;  // a T to move from, or a landing
  bool sends;
  waiter* select = nullptr;   // if not null, the select's own node, whose outcome is the number of the case
  std::uint32_t case_number;  // from 1

  void settle(channel_status how) noexcept {
    outcome = static_cast<std::uint32_t>(how) + 1;
    if (select != nullptr) select->outcome = case_number;
  }
  // Once it has an outcome.
  [[nodiscard]] channel_status how() const noexcept { return static_cast<channel_status>(outcome - 1); }
};

// The partners claimed by one operation. Declare it before the guard of the lock (see wake_batch).
class channel_wakes : public wake_batch {
 public:
  explicit channel_wakes(channel_core& of) noexcept : of_(of) {}
  ~channel_wakes() {
    if (!empty()) reach(channel_moment::will_complete, of_);
  }
  channel_wakes(const channel_wakes&) = delete;
  channel_wakes& operator=(const channel_wakes&) = delete;

 private:
  channel_core& of_;
};

class channel_core final : public waitable {
 public:
  channel_core(const element_ops& ops, void* slots, std::size_t capacity) noexcept : ops_(ops) {
    buffer_.use(slots, capacity, ops);
    leftovers_.use(nullptr, 0, ops);
  }
  ~channel_core();

  // One attempt, with the lock: ok, closed, or would_block, which has changed nothing. Claimed partners go to `wakes`.
  // Throws what moving the element throws (C5).
  [[nodiscard]] RAMIE_ALWAYS_INLINE channel_status try_send(void* element, wake_batch& wakes);
  [[nodiscard]] RAMIE_ALWAYS_INLINE channel_status try_recv(void* to, wake_batch& wakes);
  [[nodiscard]] channel_status attempt(channel_waiter& node, wake_batch& wakes) {
    return node.sends ? try_send(node.element, wakes) : try_recv(node.element, wakes);
  }
  RAMIE_ALWAYS_INLINE void list(channel_waiter& node) noexcept {
    (node.sends ? senders_ : receivers_).add_in_order(node, places_);
  }
  void unlist(channel_waiter& node) noexcept { (node.sends ? senders_ : receivers_).remove(node); }

  // The fast path, with the lock, for elements that are words: these move without a call and never throw. At most one
  // partner is concerned: if a sender can be claimed the buffer is full (C3), so one element leaves and one enters.
  //
  // By the buffer, while nobody waits. False: nothing has changed.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool push_word(const void* element) noexcept {
    if (closed_.load(std::memory_order_relaxed) || buffer_.full()) return false;
    buffer_.push_word(element);
    return true;
  }
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool pop_word(void* to) noexcept {
    if (buffer_.count() == 0) return false;
    buffer_.pop_word(to);
    return true;
  }
  // By a partner, which is returned: it is claimed, and to be completed without the lock. Null: nothing has changed.
  [[nodiscard]] RAMIE_ALWAYS_INLINE fiber* hand_word_over(const void* element) noexcept {
    channel_waiter* const receiver = claim_first(receivers_);
    if (receiver == nullptr) return nullptr;
    buffer_.copy_word(receiver->element, element);
    receiver->settle(channel_status::ok);
    return receiver->who;
  }
  [[nodiscard]] RAMIE_ALWAYS_INLINE fiber* take_word_over(void* to) noexcept {
    channel_waiter* const sender = claim_first(senders_);
    if (sender == nullptr) return nullptr;
    if (buffer_.count() == 0) {
      buffer_.copy_word(to, sender->element);
    } else {
      buffer_.pop_word(to);
      buffer_.push_word(sender->element);
    }
    sender->settle(channel_status::ok);
    return sender->who;
  }
  [[nodiscard]] bool carries_words() const noexcept { return buffer_.holds_words(); }

  // Without the lock racy: only hints. Whether an attempt would do something:
  [[nodiscard]] bool may_send() const noexcept {
    return !receivers_.empty() || !buffer_.full() || closed_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool may_recv() const noexcept {
    return !senders_.empty() || buffer_.count() != 0 || closed_.load(std::memory_order_relaxed);
  }
  [[nodiscard]] bool receivers_wait() const noexcept { return !receivers_.empty(); }
  [[nodiscard]] bool senders_wait() const noexcept { return !senders_.empty(); }

  // Without the lock.
  bool close(std::exception_ptr why) noexcept;
  void abandon() noexcept;
  void rethrow();
  [[nodiscard]] std::size_t size() const noexcept { return buffer_.count() + leftovers_.count(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return buffer_.capacity(); }
  // Acquire: who sees it closed sees what was done before the close.
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  [[nodiscard]] const element_ops& ops() const noexcept { return ops_; }

  bool try_complete(waiter&) override { return false; }  // publish does, under the lock it takes anyway
  bool publish(waiter& node) override;
  void unpublish(waiter& node) noexcept override;

 private:
  [[nodiscard]] RAMIE_ALWAYS_INLINE static channel_waiter* claim_first(wait_list& partners) noexcept {
    return static_cast<channel_waiter*>(partners.claim_first());
  }
  [[nodiscard]] bool publish_slow(channel_waiter& node);
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool hand_over(wait_list& partners, void* mine, wake_batch& wakes);
  void refill(wake_batch& wakes) noexcept;
  void keep_elements(element_ring& leftovers, wake_batch& wakes) noexcept;
  void refuse_receivers(wake_batch& wakes) noexcept;

  // The first cache line is all that a hand-over to or from a waiting partner needs, the second what listing oneself
  // and a buffer need.
  platform::atomic<bool> closed_{false};  // written under the lock
  wait_list receivers_;
  wait_list senders_;

 public:
  platform::biased_lock lock;

 private:
  std::uint64_t places_ = 0;  // given to waiters
  element_ring buffer_;
  element_ring leftovers_;  // what senders that waited at the close have left
  const element_ops& ops_;
  std::exception_ptr why_closed_;  // set before closed_, read after

 public:
  platform::atomic<std::uint32_t> references{1};
  platform::atomic<std::uint32_t> sender_ends{0};
  platform::atomic<std::uint32_t> receiver_ends{0};
};

// Claims the first of the partners and moves the element from or to its variable. C5 if the move throws.
RAMIE_ALWAYS_INLINE bool channel_core::hand_over(wait_list& partners, void* mine, wake_batch& wakes) {
  channel_waiter* const partner = claim_first(partners);
  if (partner == nullptr) return false;
  wakes.add(*partner);
  if (partner->sends) {
    buffer_.deliver(mine, partner->element);
  } else {
    buffer_.deliver(partner->element, mine);
  }
  partner->settle(channel_status::ok);
  return true;
}

RAMIE_ALWAYS_INLINE channel_status channel_core::try_send(void* element, wake_batch& wakes) {
  if (closed_.load(std::memory_order_relaxed)) [[unlikely]]
    return channel_status::closed;
  if (!receivers_.empty() && hand_over(receivers_, element, wakes)) return channel_status::ok;
  if (buffer_.full()) return channel_status::would_block;
  buffer_.push(element);
  return channel_status::ok;
}

RAMIE_ALWAYS_INLINE channel_status channel_core::try_recv(void* to, wake_batch& wakes) {
  if (buffer_.count() != 0) {
    buffer_.pop(to);
    if (!senders_.empty()) refill(wakes);
    return channel_status::ok;
  }
  if (leftovers_.count() != 0) [[unlikely]] {
    leftovers_.pop(to);
    return channel_status::ok;
  }
  if (!senders_.empty() && hand_over(senders_, to, wakes)) return channel_status::ok;
  return closed_.load(std::memory_order_relaxed) ? channel_status::closed : channel_status::would_block;
}

[[nodiscard]] inline const platform::lock_user* lock_user_of(const call_context& at) noexcept {
  return at.local != nullptr ? &at.local->lock_user : nullptr;
}
using channel_guard = platform::biased_lock::guard;

}  // namespace ramie::channel_internal
