// SPDX-License-Identifier: BSL-1.0
#include "readiness.hpp"

#include <poll.h>

#include <bit>
#include <cerrno>
#include <mutex>
#include <new>
#include <utility>

#include "io_mechanisms.hpp"

namespace ramie::platform {

namespace {

void enlist(io_operation*& first, io_operation& op) noexcept {  // oldest first
  io_operation** last = &first;
  while (*last != nullptr) last = &(*last)->next;
  op.next = nullptr;
  op.link = last;
  *last = &op;
}

void delist(io_operation& op) noexcept {
  *op.link = op.next;
  if (op.next != nullptr) op.next->link = op.link;
  op.link = nullptr;
}

std::uint32_t all_awaited(const io_operation* first) noexcept {
  std::uint32_t all = 0;
  for (; first != nullptr; first = first->next) all |= awaited(*first);
  return all;
}

}  // namespace

namespace {

std::int32_t try_anew(io_operation& op) noexcept {
  op.state = 0;
  return try_at_once(op);
}

}  // namespace

void readiness_backend::submit(io_operation& op) noexcept {
  op.link = nullptr;
  const std::int32_t result = std::exchange(op.tried, false) ? -EAGAIN : try_anew(op);
  std::lock_guard hold(mutex_);
  ++under_way_;
  op.result = result != -EAGAIN ? result : list(op);
  if (op.result != -EAGAIN) done(op);
}

// -EAGAIN: it is listed and waits. Else the -errno with which it can't.
std::int32_t readiness_backend::list(io_operation& op) noexcept {
  const auto index = static_cast<std::size_t>(op.fd);
  if (op.fd < 0) return -EBADF;
  if (index >= waiting_.size() && !grow_to(index + 1)) return -ENOMEM;
  enlist(waiting_[index], op);
  if (const int refused = arm(op.fd)) {
    delist(op);
    return -refused;
  }
  return -EAGAIN;
}

bool readiness_backend::grow_to(std::size_t descriptors) noexcept {
  try {
    waiting_.resize(std::bit_ceil(descriptors));
  } catch (const std::bad_alloc&) {
    return false;
  }
  for (io_operation*& first : waiting_) {
    if (first != nullptr) first->link = &first;  // it has moved
  }
  return true;
}

int readiness_backend::arm(std::int32_t fd) noexcept {
  return source_->arm(fd, all_awaited(waiting_[static_cast<std::size_t>(fd)]));
}

void readiness_backend::cancel(io_operation& op) noexcept {
  std::lock_guard hold(mutex_);
  if (op.link == nullptr) return;  // done
  delist(op);
  (void)arm(op.fd);  // for fewer events: if that fails, one comes that no operation waits for
  op.result = -ECANCELED;
  done(op);
}

void readiness_backend::done(io_operation& op) noexcept {
  op.next = nullptr;
  *last_done_ = &op;
  last_done_ = &op.next;
  if (sleeping_) source_->interrupt();
}

std::size_t readiness_backend::hand_out(std::span<io_operation*> out) noexcept {
  std::size_t count = 0;
  for (; count < out.size() && first_done_ != nullptr; ++count) {
    out[count] = first_done_;
    first_done_ = first_done_->next;
  }
  under_way_ -= count;
  if (first_done_ == nullptr) last_done_ = &first_done_;
  return count;
}

void readiness_backend::work_off(const readiness_source::event& e) noexcept {
  const auto index = static_cast<std::size_t>(e.fd);
  if (index >= waiting_.size()) return;
  const std::uint32_t happened = e.events & (POLLERR | POLLHUP | POLLNVAL) ? ~0u : e.events;
  for (io_operation* op = waiting_[index]; op != nullptr;) {
    io_operation* const following = op->next;
    if ((awaited(*op) & happened) != 0) {
      const std::int32_t result = try_at_once(*op);
      if (result != -EAGAIN) {
        delist(*op);
        op->result = result;
        done(*op);
      }
    }
    op = following;
  }
  if (waiting_[index] == nullptr) return;
  if (const int refused = arm(e.fd)) {
    while (io_operation* const op = waiting_[index]) {
      delist(*op);
      op->result = -refused;
      done(*op);
    }
  }
}

void readiness_backend::collect(time_point until) noexcept {
  readiness_source::event events[events_at_once];
  const std::size_t count = source_->collect(events, until);
  std::lock_guard hold(mutex_);
  for (std::size_t i = 0; i < count; ++i) work_off(events[i]);
}

std::size_t readiness_backend::poll(std::span<io_operation*> out) noexcept {
  collect(time_point::min());
  std::lock_guard hold(mutex_);
  return hand_out(out);
}

std::size_t readiness_backend::wait(std::span<io_operation*> out, time_point until) noexcept {
  {
    std::lock_guard hold(mutex_);
    if (const std::size_t count = hand_out(out); count != 0 || std::exchange(woken_, false)) return count;
    sleeping_ = true;
  }
  collect(until);
  std::lock_guard hold(mutex_);
  sleeping_ = woken_ = false;
  return hand_out(out);
}

void readiness_backend::wake() noexcept {
  std::lock_guard hold(mutex_);
  woken_ = true;
  if (sleeping_) source_->interrupt();
}

}  // namespace ramie::platform
