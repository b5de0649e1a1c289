// SPDX-License-Identifier: BSL-1.0
// A descriptor's readiness as a case of a fiber's select (a plain thread's: io/src/net/readiness_watch.cpp). The
// operation is submitted when the select has to wait for the first time, stays under way while the select waits again,
// and is ended when the select is over: leave() waits for that, for the operation is in the memory of the case.
#include <ramie/detail/readiness_source.hpp>

#include <cerrno>
#include <new>
#include <string>
#include <type_traits>

#include <ramie/runtime/current.hpp>
#include <ramie/runtime/io.hpp>
#include <ramie/runtime/ready.hpp>

#include "../sched/scheduler.hpp"
#include "request.hpp"

namespace ramie::runtime_internal {

namespace {

const wait_reason waits_for_select_end{"select on a descriptor, until it is called off"};

// Used by the fiber that selects. Between submit and the completion the operation is the backend's.
struct under_way {
  under_way(const readiness_wait& wait, fiber& who) noexcept : request(op, who) {
    op.code = platform::io_code::ready;
    op.fd = wait.fd;
    op.flags = wait.events;
  }
  platform::io_operation op;
  io_request request;
  platform::io_backend* on = nullptr;  // the one that it was submitted to; null: not yet
  std::int32_t refused = 0;            // -errno: it can't be submitted
};
static_assert(sizeof(under_way) <= sizeof(readiness_wait::memory) && std::is_trivially_destructible_v<under_way>);

readiness_wait& wait_of(const ready_source& from) noexcept {
  return *static_cast<readiness_wait*>(from.what);
}
under_way& state_of(const ready_source& from) noexcept {
  return *std::launder(reinterpret_cast<under_way*>(wait_of(from).memory));
}

waiter& enter(const ready_source& from, void* memory) {
  const call_context at = current_context();
  readiness_wait& wait = wait_of(from);
  if (at.self == nullptr) no_fiber_to_wait();
  ::new (wait.memory) under_way(wait, *at.self);
  return make_ready_node<waiter>(memory);
}

// -EAGAIN: it is not known yet.
std::int32_t check(under_way& state) noexcept {
  if (state.refused != 0) return state.refused;
  if (state.on != nullptr) return state.request.done() ? state.op.result : -EAGAIN;
  state.op.state = 0;
  return state.op.fd < 0 ? -EBADF : platform::try_at_once(state.op);
}

bool try_take(const ready_source& from, waiter&) {
  readiness_wait& wait = wait_of(from);
  const std::int32_t found = check(state_of(from));
  if (found == -EAGAIN) return false;
  wait.result = events_or_error(found, wait.events);
  if (wait.result < 0) throw_io_error(wait.result, (std::string("ramie: ") + wait.what).c_str());
  return true;
}

bool publish(const ready_source& from, waiter& node) noexcept {
  under_way& state = state_of(from);
  if (state.on == nullptr) {
    worker& w = *this_worker();
    state.refused = w.sched.io.prepare(w, open_descriptor::never);
    if (state.refused != 0) return false;
    state.on = w.io.backend();
    state.op.tried = true;
    state.on->submit(state.op);
    w.sched.io.begun(w);
  }
  return state.request.publish(node);
}

void unpublish(const ready_source& from, waiter& node) noexcept {
  state_of(from).request.unpublish(node);
}

void leave(const ready_source& from, waiter&) noexcept {
  under_way& state = state_of(from);
  if (state.on == nullptr || state.request.done()) return;
  state.on->cancel(state.op);
  waiter node;
  (void)fiber_wait(state.request, node, waits_for_select_end, cancellable::no);
}

constexpr ready_ops ops_of_readiness{enter, leave, try_take, publish, unpublish};

}  // namespace

ready_source source_of(readiness_wait& wait) noexcept {
  return {&ops_of_readiness, &wait};
}

}  // namespace ramie::runtime_internal
