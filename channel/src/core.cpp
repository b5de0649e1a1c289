// SPDX-License-Identifier: BSL-1.0
#include "core.hpp"

#include <cstring>
#include <new>
#include <utility>

namespace ramie::channel_internal {

using namespace runtime_internal;

void element_ring::push_slow(void* from) {
  char* const slot = slots_ + after(head_, count()) * ops_->size;
  if (ops_->store == nullptr) {
    std::memcpy(slot, from, ops_->size);
  } else {
    ops_->store(slot, from);
  }
  count_.add(1);
}

void element_ring::pop_slow(void* landing) {
  char* const slot = slots_ + head_ * ops_->size;
  deliver_slow(landing, slot);
  if (ops_->store != nullptr) ops_->destroy(slot);
  head_ = after(head_, 1);
  count_.add(static_cast<std::size_t>(-1));
}

void element_ring::deliver_slow(void* landing, void* from) const {
  if (ops_->store == nullptr) {
    std::memcpy(landing, from, ops_->size);
  } else {
    ops_->deliver(landing, from);
  }
}

void element_ring::destroy_all() noexcept {
  for (; count() != 0; count_.add(static_cast<std::size_t>(-1)), head_ = after(head_, 1)) {
    if (ops_->store != nullptr) ops_->destroy(slots_ + head_ * ops_->size);
  }
}

channel_core::~channel_core() {
  buffer_.destroy_all();
  leftovers_.destroy_all();
  if (void* const block = leftovers_.memory()) ::operator delete(block, std::align_val_t(ops_.alignment));
}

// The buffer has room: elements of waiting senders move into it.
void channel_core::refill(wake_batch& wakes) noexcept {
  while (!senders_.empty() && !buffer_.full()) {
    channel_waiter* const sender = claim_first(senders_);
    if (sender == nullptr) return;
    wakes.add(*sender);
    try {
      buffer_.push(sender->element);
      sender->settle(channel_status::ok);
    } catch (...) {  // the sender repeats the move, and the exception is thrown there
    }
  }
}

void channel_core::refuse_receivers(wake_batch& wakes) noexcept {
  while (channel_waiter* const node = claim_first(receivers_)) {
    node->settle(channel_status::closed);
    wakes.add(*node);
  }
}

// Each waiting sender's element becomes a leftover, if there is room and it can be moved.
void channel_core::keep_elements(element_ring& leftovers, wake_batch& wakes) noexcept {
  while (channel_waiter* const node = claim_first(senders_)) {
    auto how = channel_status::closed;
    try {
      if (!leftovers.full()) {
        leftovers.push(node->element);
        how = channel_status::ok;
      }
    } catch (...) {  // the sender keeps its element, and its send returns false
    }
    node->settle(how);
    wakes.add(*node);
  }
}

// In two steps, because memory is not allocated under a spin lock. After the first no waiter lists itself any more (C1),
// so the second finds no more senders than were counted.
bool channel_core::close(std::exception_ptr why) noexcept {
  std::size_t senders = 0;
  {
    channel_wakes wakes(*this);
    channel_guard hold(lock, lock_user_of(current_context()));
    if (closed_.load(std::memory_order_relaxed)) return false;
    why_closed_ = std::move(why);
    closed_.store(true, std::memory_order_release);
    refuse_receivers(wakes);
    for (const waiter* node = senders_.first(); node != nullptr; node = node->next) ++senders;
  }
  reach(channel_moment::has_closed, *this);
  if (senders == 0) return true;
  void* const block = ::operator new(ops_.size * senders, std::align_val_t(ops_.alignment), std::nothrow);
  channel_wakes wakes(*this);
  channel_guard hold(lock, lock_user_of(current_context()));
  leftovers_.use(block, block != nullptr ? senders : 0, ops_);
  keep_elements(leftovers_, wakes);
  return true;
}

// The last receiver has gone: waiting senders keep their elements, and what was sent is destroyed, without the lock. No
// other operation touches the buffer meanwhile: there are no receivers, and sends find the channel closed.
void channel_core::abandon() noexcept {
  {
    channel_wakes wakes(*this);
    channel_guard hold(lock, lock_user_of(current_context()));
    closed_.store(true, std::memory_order_release);
    element_ring nowhere;
    nowhere.use(nullptr, 0, ops_);
    keep_elements(nowhere, wakes);
  }
  buffer_.destroy_all();
  leftovers_.destroy_all();
}

void channel_core::rethrow() {
  std::exception_ptr why;
  {
    channel_guard hold(lock, lock_user_of(current_context()));
    why = why_closed_;
  }
  if (why != nullptr) std::rethrow_exception(std::move(why));
}

}  // namespace ramie::channel_internal
