// SPDX-License-Identifier: BSL-1.0
// Sending and receiving.
//
//   channel_send, channel_recv   the fast path: the lock by its grant, an element that is a word. The buffer first; a
//                                partner that waits is met by hand_to_receiver or take_from_sender, which are called
//                                last, so that the way through the buffer needs no stack frame.
//   operate_slow                 every element, fiber or thread, however the lock is taken: an attempt, then a wait.
//   publish                      the attempt is repeated under the lock in which the waiter lists itself (clause C10).
#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>

#include "core.hpp"

namespace ramie::channel_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_to_send{"channel send"};
const wait_reason waits_to_recv{"channel recv"};
const wait_reason waits_to_send_until{"channel send, with a deadline"};
const wait_reason waits_to_recv_until{"channel recv, with a deadline"};

// One attempt for every element, by a fiber or a thread. Not cancellation points.
RAMIE_NOINLINE channel_status attempt_send(channel_core& c, void* element, const call_context& at) {
  channel_wakes wakes(c);
  channel_guard hold(c.lock, lock_user_of(at));
  return c.try_send(element, wakes);
}
RAMIE_NOINLINE channel_status attempt_recv(channel_core& c, void* to, const call_context& at) {
  channel_wakes wakes(c);
  channel_guard hold(c.lock, lock_user_of(at));
  return c.try_recv(to, wakes);
}

// An attempt, else a wait. A cancellation point.
RAMIE_ALWAYS_INLINE channel_status operate_slow(channel_core& c, channel_waiter node, const wait_reason& why,
                                                channel_time deadline = channel_time::max()) {
  call_context at = current_context();
  begin_operation(at);
  const channel_status how = node.sends ? attempt_send(c, node.element, at) : attempt_recv(c, node.element, at);
  if (how != channel_status::would_block) return how;
  const wait_result ended = fiber_wait_until(c, node, why, deadline);
  return ended == wait_result::timed_out ? channel_status::timed_out : node.how();
}

RAMIE_NOINLINE channel_status send_slow(channel_core& c, void* element) {
  return operate_slow(c, channel_waiter(element, true), waits_to_send);
}
RAMIE_NOINLINE channel_status recv_slow(channel_core& c, void* to) {
  return operate_slow(c, channel_waiter(to, false), waits_to_recv);
}

// Without an attempt, which would be in vain. The wait looks at the caller's cancel scopes and lets others run, so
// begin_operation is not needed.
RAMIE_NOINLINE channel_status wait_to_send(channel_core& c, void* element) {
  channel_waiter node(element, true);
  (void)fiber_wait_fresh_first(c, node, waits_to_send);
  return node.how();
}
RAMIE_NOINLINE channel_status wait_to_recv(channel_core& c, void* to) {
  channel_waiter node(to, false);
  (void)fiber_wait_fresh_first(c, node, waits_to_recv);
  return node.how();
}

// Takes the lock for the fast path. False: the slow path is needed, because the caller is a plain thread, has to look
// at its cancel scopes or let others run first, because elements are no words, or because the lock is not granted to
// its worker.
[[nodiscard]] RAMIE_ALWAYS_INLINE bool enter_fast(channel_core& c, const call_context& at) noexcept {
  return at.self != nullptr && c.carries_words() && nothing_pending(at) && c.lock.enter_granted(&at.local->lock_user);
}

// The end of a send, or a receive, that holds the lock by its grant and has found a partner. Leaves the lock.
RAMIE_NOINLINE channel_status hand_to_receiver(channel_core& c, void* element, call_context at) {
  fiber* const receiver = c.hand_word_over(element);
  c.lock.leave_granted(&at.local->lock_user);
  if (receiver == nullptr) [[unlikely]]
    return send_slow(c, element);  // all that were listed are awake for other reasons
  spend_one(at);
  reach(channel_moment::will_complete, c);
  complete(*receiver);
  return channel_status::ok;
}
RAMIE_NOINLINE channel_status take_from_sender(channel_core& c, void* to, call_context at) {
  fiber* const sender = c.take_word_over(to);
  c.lock.leave_granted(&at.local->lock_user);
  if (sender == nullptr) [[unlikely]]
    return recv_slow(c, to);
  spend_one(at);
  reach(channel_moment::will_complete, c);
  complete(*sender);
  return channel_status::ok;
}

}  // namespace

channel_status channel_send(channel_core& c, void* element) {
  if (!c.may_send()) return wait_to_send(c, element);
  const call_context at = current_context();
  if (!enter_fast(c, at)) [[unlikely]]
    return send_slow(c, element);
  if (c.receivers_wait()) return hand_to_receiver(c, element, at);
  const bool pushed = c.push_word(element);
  c.lock.leave_granted(&at.local->lock_user);
  if (!pushed) [[unlikely]]
    return send_slow(c, element);
  spend_one(at);
  return channel_status::ok;
}

channel_status channel_recv(channel_core& c, void* to) {
  if (!c.may_recv()) return wait_to_recv(c, to);
  const call_context at = current_context();
  if (!enter_fast(c, at)) [[unlikely]]
    return recv_slow(c, to);
  if (c.senders_wait()) return take_from_sender(c, to, at);
  const bool popped = c.pop_word(to);
  c.lock.leave_granted(&at.local->lock_user);
  if (!popped) [[unlikely]]
    return recv_slow(c, to);
  spend_one(at);
  return channel_status::ok;
}

channel_status channel_send_until(channel_core& c, void* element, channel_time deadline) {
  return operate_slow(c, channel_waiter(element, true), waits_to_send_until, deadline);
}

channel_status channel_recv_until(channel_core& c, void* to, channel_time deadline) {
  return operate_slow(c, channel_waiter(to, false), waits_to_recv_until, deadline);
}

channel_status channel_try_send(channel_core& c, void* element) {
  const call_context at = current_context();
  spend_budget(at);
  return attempt_send(c, element, at);
}

channel_status channel_try_recv(channel_core& c, void* to) {
  const call_context at = current_context();
  spend_budget(at);
  return attempt_recv(c, to, at);
}

bool channel_core::publish(waiter& self) {
  auto& node = static_cast<channel_waiter&>(self);
  reach(channel_moment::will_publish, *this);
  const auto* const me = lock_user_of(current_context());
  if (me == nullptr || !lock.enter_granted(me)) return publish_slow(node);
  const bool may_succeed = node.sends ? may_send() : may_recv();
  if (!may_succeed) [[likely]]
    list(node);
  lock.leave_granted_for_long(me);
  if (may_succeed) [[unlikely]]
    return publish_slow(node);
  reach(channel_moment::has_published, *this);
  return true;
}

bool channel_core::publish_slow(channel_waiter& node) {
  {
    channel_wakes wakes(*this);
    channel_guard hold(lock, lock_user_of(current_context()));
    if (node.sends ? may_send() : may_recv()) [[unlikely]] {
      const channel_status how = attempt(node, wakes);
      if (how != channel_status::would_block) {
        node.settle(how);
        return false;
      }
    }
    list(node);
  }
  reach(channel_moment::has_published, *this);
  return true;
}

void channel_core::unpublish(waiter& self) noexcept {
  reach(channel_moment::will_unpublish, *this);
  channel_guard hold(lock, lock_user_of(current_context()));
  unlist(static_cast<channel_waiter&>(self));
}

bool channel_close(channel_core& c, std::exception_ptr why) noexcept {
  return c.close(std::move(why));
}

void channel_rethrow(channel_core& c) {
  c.rethrow();
}

std::size_t channel_size(const channel_core& c) noexcept {
  return c.size();
}

std::size_t channel_capacity(const channel_core& c) noexcept {
  return c.capacity();
}

bool channel_closed(const channel_core& c) noexcept {
  return c.closed();
}

namespace {

// The hot fields of a core share no cache line with anything else.
std::size_t block_alignment(const element_ops& ops) noexcept {
  return std::max<std::size_t>(64, ops.alignment);
}

}  // namespace

// Core and buffer are one block: the core first, then the slots, aligned for both.
channel_core* make_channel_core(const element_ops& ops, std::size_t capacity) {
  const auto alignment = block_alignment(ops);
  const auto offset = (sizeof(channel_core) + ops.alignment - 1) / ops.alignment * ops.alignment;
  if (capacity > (static_cast<std::size_t>(-1) / 2 - offset) / ops.size) throw std::bad_alloc();
  void* const block = ::operator new(offset + capacity * ops.size, std::align_val_t(alignment));
  return ::new (block) channel_core(ops, static_cast<char*>(block) + offset, capacity);
}

void retain(channel_core& c) noexcept {
  c.references.fetch_add(1, std::memory_order_relaxed);
}

void release(channel_core& c) noexcept {
  if (c.references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  const auto alignment = block_alignment(c.ops());
  c.~channel_core();
  ::operator delete(&c, std::align_val_t(alignment));
}

void add_sender(channel_core& c) noexcept {
  c.sender_ends.fetch_add(1, std::memory_order_relaxed);
}

void drop_sender(channel_core& c) noexcept {
  if (c.sender_ends.fetch_sub(1, std::memory_order_acq_rel) == 1) (void)c.close(nullptr);
}

void add_receiver(channel_core& c) noexcept {
  c.receiver_ends.fetch_add(1, std::memory_order_relaxed);
}

void drop_receiver(channel_core& c) noexcept {
  if (c.receiver_ends.fetch_sub(1, std::memory_order_acq_rel) == 1) c.abandon();
}

void no_such_channel(const char* type, const char* operation) {
  throw usage_error("ramie: " + std::string(type) + "::" + operation +
                    ": this handle has no channel: it was default-made, moved from, or reset. Make one by "
                    "channel<T>(capacity) or make_channel<T>(capacity).");
}

}  // namespace ramie::channel_internal

namespace ramie::inline v0 {

const char* to_string(channel_status status) noexcept {
  switch (status) {
    case channel_status::ok: return "ok";
    case channel_status::would_block: return "would block";
    case channel_status::closed: return "closed";
    case channel_status::timed_out: return "timed out";
  }
  return "unknown";
}

const char* bad_received_access::what() const noexcept {
  switch (status_) {
    case channel_status::would_block:
      return "ramie: received::value: nothing was received: it would have had to wait. Ask has_value() first.";
    case channel_status::closed:
      return "ramie: received::value: nothing was received: it is closed and drained. Ask has_value() first.";
    case channel_status::timed_out:
      return "ramie: received::value: nothing was received: the time was up. Ask has_value() first.";
    case channel_status::ok: break;
  }
  return "ramie: received::value: nothing was received, or it was moved away. Ask has_value() first.";
}

}  // namespace ramie::inline v0
