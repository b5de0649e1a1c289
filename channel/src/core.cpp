// SPDX-License-Identifier: BSL-1.0
#include "core.hpp"

#include <new>
#include <utility>

namespace ramie::detail {

void element_ring::push(void* from) {
  char* const slot = slots_ + after(head_, count()) * size_;
  if (ops_->store == nullptr) {
    copy_bytes(slot, from, size_);
  } else {
    ops_->store(slot, from);
  }
  count_.add(1);
}

void element_ring::pop(void* landing) {
  char* const slot = slots_ + head_ * size_;
  if (ops_->store == nullptr) {
    copy_bytes(landing, slot, size_);
  } else {
    ops_->deliver(landing, slot);
    ops_->destroy(slot);
  }
  head_ = after(head_, 1);
  count_.add(static_cast<std::size_t>(-1));
}

void element_ring::destroy_all() noexcept {
  for (; count() != 0; count_.add(static_cast<std::size_t>(-1)), head_ = after(head_, 1)) {
    if (ops_->store != nullptr) ops_->destroy(slots_ + head_ * size_);
  }
}

channel_core::~channel_core() {
  buffer_.destroy_all();
  behind_.destroy_all();
  if (void* const block = behind_.memory()) ::operator delete(block, std::align_val_t(ops_.alignment));
}

// There is room: waiting senders move up.
void channel_core::refill(will_tell& later) noexcept {
  while (!senders_.empty() && !buffer_.full()) {
    auto* const node = static_cast<channel_waiter*>(senders_.claim_first());
    if (node == nullptr) return;
    later.add(*node);
    try {
      buffer_.push(node->element);
      node->settle(meeting::done);
    } catch (...) {  // its own affair: it tries again, and throws there
    }
  }
}

// Where it was.
void channel_core::list_again(channel_waiter& node) noexcept {
  wait_list& where = node.sends ? senders_ : receivers_;
  waiter* successor = where.first();
  while (successor != nullptr && static_cast<channel_waiter*>(successor)->place < node.place)
    successor = successor->next;
  if (successor != nullptr) {
    where.add_before(node, *successor);
  } else {
    where.add(node);
  }
}

bool channel_core::publish(waiter& self) {
  auto& node = static_cast<channel_waiter&>(self);
  reach(channel_moment::will_publish, *this);
  const auto* const me = party_of(look_around());
  if (me == nullptr || !lock.enter_granted(me)) return publish_slowly(node);
  const bool in_vain = node.sends ? may_send() : may_recv();
  if (!in_vain) [[likely]]
    list(node);
  lock.leave_granted(me);
  if (in_vain) [[unlikely]]
    return publish_slowly(node);
  reach(channel_moment::has_published, *this);
  return true;
}

bool channel_core::publish_slowly(channel_waiter& node) {
  {
    will_tell later(*this);
    channel_guard hold(lock, party_of(look_around()));
    if (node.sends ? may_send() : may_recv()) [[unlikely]] {
      const meeting how = attempt(node, later);
      if (how != meeting::none) {
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
  channel_guard hold(lock, party_of(look_around()));
  unlist(static_cast<channel_waiter&>(self));
}

void channel_core::refuse_receivers(will_tell& later) noexcept {
  while (auto* const node = static_cast<channel_waiter*>(receivers_.claim_first())) {
    node->settle(meeting::closed);
    later.add(*node);
  }
}

void channel_core::shelter_senders(element_ring& shelter, will_tell& later) noexcept {
  while (auto* const node = static_cast<channel_waiter*>(senders_.claim_first())) {
    auto how = meeting::closed;
    try {
      if (!shelter.full()) {
        shelter.push(node->element);
        how = meeting::done;
      }
    } catch (...) {  // it keeps its element, and is told so
    }
    node->settle(how);
    later.add(*node);
  }
}

// In two steps, because memory is not allocated under a spin lock. After the first nobody is listed any more (C1), so
// the second finds no more senders than were counted.
bool channel_core::close(std::exception_ptr why) noexcept {
  std::size_t senders = 0;
  {
    will_tell later(*this);
    channel_guard hold(lock, party_of(look_around()));
    if (closed_.load(std::memory_order_relaxed)) return false;
    why_closed_ = std::move(why);
    closed_.store(true, std::memory_order_release);
    refuse_receivers(later);
    for (const waiter* node = senders_.first(); node != nullptr; node = node->next) ++senders;
  }
  reach(channel_moment::has_closed, *this);
  if (senders == 0) return true;
  void* const block = ::operator new(ops_.size* senders, std::align_val_t(ops_.alignment), std::nothrow);
  will_tell later(*this);
  channel_guard hold(lock, party_of(look_around()));
  behind_.use(block, block != nullptr ? senders : 0, ops_);
  shelter_senders(behind_, later);
  return true;
}

// Nobody will receive any more: senders keep their elements, and what was sent is destroyed, without the lock. Nobody
// touches the buffer meanwhile: there are no receivers, and sends find it closed.
void channel_core::abandon() noexcept {
  {
    will_tell later(*this);
    channel_guard hold(lock, party_of(look_around()));
    closed_.store(true, std::memory_order_release);
    element_ring nowhere;
    nowhere.use(nullptr, 0, ops_);
    shelter_senders(nowhere, later);
  }
  buffer_.destroy_all();
  behind_.destroy_all();
}

void channel_core::rethrow() {
  std::exception_ptr why;
  {
    channel_guard hold(lock, party_of(look_around()));
    why = why_closed_;
  }
  if (why != nullptr) std::rethrow_exception(std::move(why));
}

}  // namespace ramie::detail
