// SPDX-License-Identifier: BSL-1.0
// Operations on channels: first an attempt, if it looks promising, then the one door to sleep.
#include <algorithm>
#include <new>
#include <utility>

#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>

#include "core.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_to_send{"channel send"};
const wait_reason waits_to_recv{"channel recv"};
const wait_reason waits_to_send_until{"channel send, with a deadline"};
const wait_reason waits_to_recv_until{"channel recv, with a deadline"};

channel_status status_of(meeting how) noexcept {
  return how == meeting::done ? channel_status::ok : channel_status::closed;
}

RAMIE_NOINLINE meeting attempt_send(channel_core& c, void* element, const whereabouts& at) {
  will_tell later(c);
  channel_guard hold(c.lock, party_of(at));
  return c.try_send(element, later);
}

RAMIE_NOINLINE meeting attempt_recv(channel_core& c, void* to, const whereabouts& at) {
  will_tell later(c);
  channel_guard hold(c.lock, party_of(at));
  return c.try_recv(to, later);
}

channel_status finish_until(channel_core& c, channel_waiter& node, const wait_reason& why, channel_time deadline) {
  if (fiber_wait_until(c, node, why, deadline) == wait_result::timed_out) return channel_status::timed_out;
  return status_of(node.how());
}

channel_status try_status(meeting how) noexcept {
  return how == meeting::none ? channel_status::would_block : status_of(how);
}

// An operation that has to wait gives others their turn by that, and looks at its scopes.
RAMIE_NOINLINE channel_status send_slowly(channel_core& c, void* element) {
  if (c.may_send()) {
    whereabouts at = look_around();
    begin_operation(at);
    const meeting how = attempt_send(c, element, at);
    if (how != meeting::none) return status_of(how);
  }
  channel_waiter node(element, true);
  (void)fiber_wait_fresh_first(c, node, waits_to_send);
  return status_of(node.how());
}

RAMIE_NOINLINE channel_status recv_slowly(channel_core& c, void* to) {
  if (c.may_recv()) {
    whereabouts at = look_around();
    begin_operation(at);
    const meeting how = attempt_recv(c, to, at);
    if (how != meeting::none) return status_of(how);
  }
  channel_waiter node(to, false);
  (void)fiber_wait_fresh_first(c, node, waits_to_recv);
  return status_of(node.how());
}

// Somebody waits.
RAMIE_NOINLINE channel_status give(channel_core& c, void* element) {
  return c.give_quickly(element) ? channel_status::ok : send_slowly(c, element);
}
RAMIE_NOINLINE channel_status get(channel_core& c, void* to) {
  return c.get_quickly(to) ? channel_status::ok : recv_slowly(c, to);
}

}  // namespace

channel_status channel_send(channel_core& c, void* element) {
  if (c.receivers_wait()) return give(c, element);
  if (c.has_room() && c.push_quickly(element)) [[likely]]
    return channel_status::ok;
  return send_slowly(c, element);
}

channel_status channel_recv(channel_core& c, void* to) {
  if (c.senders_wait()) return get(c, to);
  if (c.has_some() && c.pop_quickly(to)) [[likely]]
    return channel_status::ok;
  return recv_slowly(c, to);
}

channel_status channel_send_until(channel_core& c, void* element, channel_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  const meeting how = attempt_send(c, element, at);
  if (how != meeting::none) return status_of(how);
  channel_waiter node(element, true);
  return finish_until(c, node, waits_to_send_until, deadline);
}

channel_status channel_recv_until(channel_core& c, void* to, channel_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  const meeting how = attempt_recv(c, to, at);
  if (how != meeting::none) return status_of(how);
  channel_waiter node(to, false);
  return finish_until(c, node, waits_to_recv_until, deadline);
}

channel_status channel_try_send(channel_core& c, void* element) {
  const whereabouts at = look_around();
  spend_budget(at);
  return try_status(attempt_send(c, element, at));
}

channel_status channel_try_recv(channel_core& c, void* to) {
  const whereabouts at = look_around();
  spend_budget(at);
  return try_status(attempt_recv(c, to, at));
}

bool channel_close(channel_core& c, std::exception_ptr why) noexcept {
  return c.close(std::move(why));
}

void channel_rethrow(channel_core& c) {
  c.rethrow();
}

std::size_t channel_len(const channel_core& c) noexcept {
  return c.len();
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

void no_such_channel() {
  throw usage_error("ramie: an operation on a handle without a channel: it was default-made, moved from, or reset.");
}

}  // namespace ramie::detail

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

}  // namespace ramie::inline v0
