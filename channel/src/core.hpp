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
//       back to the front of its list; the exception is the caller's, or, when the caller only helps a waiting
//       sender into the buffer, that sender's, which tries again by itself.
//   C6  After CLOSED and close's second step no sender is listed: each was moved behind the buffer, or got its
//       element back.
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
#include <ramie/runtime/here.hpp>
#include <ramie/runtime/wait.hpp>

#include "hooks.hpp"

namespace ramie::detail {

// How an attempt went; also the outcome in a waiter's node, where `none` is "not yet".
enum class meeting : std::uint32_t { none = 0, done = 1, closed = 2 };

// An operation that waits. For a select, one of its cases: then the select's own node is told, too.
struct channel_waiter : waiter {
  channel_waiter(void* what, bool is_sender) noexcept : element(what), sends(is_sender) {}

  void* element;  // a T to move from, or a landing
  bool sends;
  bool goes_first = false;        // it was claimed in vain (C5)
  waiter* select = nullptr;       // whose `outcome` is set to `case_number`
  std::uint32_t case_number = 0;  // from 1

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
    *end_ = &node;
    end_ = &node.next;
  }

 private:
  void tell_all() noexcept;
  channel_core* at_ = nullptr;  // for the hooks
  waiter* first_ = nullptr;
  waiter** end_ = &first_;
};

// A run of slots used as a ring.
class element_ring {
 public:
  // `slots` may be null for capacity 0.
  void use(void* slots, std::size_t capacity, const element_ops& ops) noexcept {
    slots_ = static_cast<char*>(slots);
    capacity_ = capacity;
    ops_ = &ops;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_.get(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool full() const noexcept { return count_.get() == capacity_; }
  void push(void* from);  // may throw; then nothing has changed
  void pop(void* landing);
  void destroy_all() noexcept;
  [[nodiscard]] void* memory() const noexcept { return slots_; }

 private:
  [[nodiscard]] std::size_t after(std::size_t index, std::size_t steps) const noexcept {
    index += steps;
    return index < capacity_ ? index : index - capacity_;
  }
  char* slots_ = nullptr;
  std::size_t capacity_ = 0;
  std::size_t head_ = 0;
  platform::owned<std::size_t> count_{0};  // without the lock, a hint
  const element_ops* ops_ = nullptr;
};

class channel_core final : public waitable {
 public:
  channel_core(const element_ops& ops, void* slots, std::size_t capacity) noexcept : ops_(ops) {
    buffer_.use(slots, capacity, ops);
    behind_.use(nullptr, 0, ops);
  }
  ~channel_core();

  // With the lock.
  [[nodiscard]] meeting try_send(void* element, will_tell& later);
  [[nodiscard]] meeting try_recv(void* to, will_tell& later);
  [[nodiscard]] meeting attempt(channel_waiter& node, will_tell& later) {
    return node.sends ? try_send(node.element, later) : try_recv(node.element, later);
  }
  void list(channel_waiter& node) noexcept;
  void unlist(channel_waiter& node) noexcept { (node.sends ? senders_ : receivers_).remove(node); }

  // Without it.
  [[nodiscard]] bool may_send() const noexcept { return closed_.get() || !receivers_.empty() || !buffer_.full(); }
  [[nodiscard]] bool may_recv() const noexcept { return buffer_.count() != 0 || !senders_.empty() || closed_.get(); }
  bool close(std::exception_ptr why) noexcept;
  void abandon() noexcept;
  void rethrow();
  [[nodiscard]] std::size_t len() const noexcept { return buffer_.count() + behind_.count(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return buffer_.capacity(); }
  [[nodiscard]] bool closed() const noexcept { return closed_.get(); }
  [[nodiscard]] const element_ops& ops() const noexcept { return ops_; }

  bool try_complete(waiter&) override { return false; }  // publish does, under the lock it takes anyway
  bool publish(waiter& node) override;
  void unpublish(waiter& node) noexcept override;

  platform::biased_lock lock;
  std::atomic<std::uint32_t> references{1};
  std::atomic<std::uint32_t> sender_ends{0};
  std::atomic<std::uint32_t> receiver_ends{0};

 private:
  void hand_over(void* to, void* from) const;
  [[nodiscard]] bool give_to_receiver(void* element, will_tell& later);
  [[nodiscard]] bool take_from_sender(void* to, will_tell& later);
  void refill(will_tell& later) noexcept;
  void shelter_senders(element_ring& shelter, will_tell& later) noexcept;
  std::size_t refuse_receivers(will_tell& later) noexcept;

  element_ring buffer_;
  wait_list receivers_;
  wait_list senders_;
  platform::owned<bool> closed_{false};
  element_ring behind_;  // what waiting senders left at the close
  const element_ops& ops_;
  std::exception_ptr why_closed_;  // set before closed_, read after
};

[[nodiscard]] inline const platform::lock_party* party_of(const whereabouts& at) noexcept {
  return at.desk != nullptr ? &at.desk->party : nullptr;
}
using channel_guard = platform::biased_lock::guard;

}  // namespace ramie::detail
