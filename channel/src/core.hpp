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
#include <cstring>
#include <exception>

#include <ramie/detail/channel_core.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/biased_lock.hpp>
#include <ramie/runtime/budget.hpp>
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
  std::uint64_t place = 0;        // in its list, kept when it is listed again; 0: not listed yet
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
    size_ = ops.size;
    ops_ = &ops;
  }
  [[nodiscard]] std::size_t count() const noexcept { return count_.get(); }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] bool full() const noexcept { return count_.get() == capacity_; }
  void push(void* from);  // may throw; then nothing has changed
  void pop(void* landing);
  // The same for elements that are a word of 4 or 8 bytes.
  RAMIE_ALWAYS_INLINE void push_word(const void* from) noexcept {
    const auto at = after(head_, count());
    if (size_ == 8) {
      std::memcpy(slots_ + at * 8, from, 8);
    } else {
      std::memcpy(slots_ + at * 4, from, 4);
    }
    count_.add(1);
  }
  RAMIE_ALWAYS_INLINE void pop_word(void* landing) noexcept {
    if (size_ == 8) {
      std::memcpy(landing, slots_ + head_ * 8, 8);
    } else {
      std::memcpy(landing, slots_ + head_ * 4, 4);
    }
    head_ = after(head_, 1);
    count_.add(static_cast<std::size_t>(-1));
  }
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
  std::size_t size_ = 0;                   // of an element
  const element_ops* ops_ = nullptr;
};

class channel_core final : public waitable {
 public:
  channel_core(const element_ops& ops, void* slots, std::size_t capacity) noexcept
      : quick_(capacity != 0 && ops.store == nullptr && (ops.size == 8 || ops.size == 4)), ops_(ops) {
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

  // The commonest operations, without a call: a fiber that need not look around, the lock granted to its worker, an
  // element that is a word, the buffer and nobody else involved. False: nothing has happened.
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool send_quickly(const void* element) noexcept;
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool recv_quickly(void* to) noexcept;

  // Without it.
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

  platform::biased_lock lock;

 private:
  template <class Step>
  [[nodiscard]] RAMIE_ALWAYS_INLINE bool quickly(Step step) noexcept;
  void hand_over(void* to, void* from) const;
  [[nodiscard]] bool meet(wait_list& partners, void* mine, will_tell& later);
  void refill(will_tell& later) noexcept;
  void shelter_senders(element_ring& shelter, will_tell& later) noexcept;
  void refuse_receivers(will_tell& later) noexcept;

  platform::atomic<bool> closed_{false};  // written under the lock
  const bool quick_;                      // there is a buffer, and elements are words
  element_ring buffer_;
  wait_list receivers_;
  wait_list senders_;
  std::uint64_t places_ = 0;  // given to waiters
  element_ring behind_;       // what waiting senders left at the close
  const element_ops& ops_;
  std::exception_ptr why_closed_;  // set before closed_, read after

 public:
  platform::atomic<std::uint32_t> references{1};
  platform::atomic<std::uint32_t> sender_ends{0};
  platform::atomic<std::uint32_t> receiver_ends{0};
};

template <class Step>
RAMIE_ALWAYS_INLINE bool channel_core::quickly(Step step) noexcept {
  const whereabouts at = look_around();
  if (at.self == nullptr || !quick_ || !quiet(at)) return false;
  if (!lock.enter_granted(&at.desk->party)) return false;
  const bool done = step();
  lock.leave_granted(&at.desk->party);
  if (done) spend_one(at);
  return done;
}

RAMIE_ALWAYS_INLINE bool channel_core::send_quickly(const void* element) noexcept {
  if (!receivers_.empty() || buffer_.full()) return false;
  return quickly([this, element]() RAMIE_FLATTEN_LAMBDA {
    if (closed_.load(std::memory_order_relaxed) || !receivers_.empty() || buffer_.full()) return false;
    buffer_.push_word(element);
    return true;
  });
}

RAMIE_ALWAYS_INLINE bool channel_core::recv_quickly(void* to) noexcept {
  if (buffer_.count() == 0) return false;
  return quickly([this, to]() RAMIE_FLATTEN_LAMBDA {
    if (buffer_.count() == 0 || !senders_.empty()) return false;
    buffer_.pop_word(to);
    return true;
  });
}

[[nodiscard]] inline const platform::lock_party* party_of(const whereabouts& at) noexcept {
  return at.desk != nullptr ? &at.desk->party : nullptr;
}
using channel_guard = platform::biased_lock::guard;

}  // namespace ramie::detail
