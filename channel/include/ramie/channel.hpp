// SPDX-License-Identifier: BSL-1.0
// Channels: how fibers talk.
//
// A channel carries elements of one type from senders to receivers, first in, first out. A waiting partner gets the
// element directly, moved from the sender's variable into the receiver's; else it waits in the buffer; if there is no
// room, the sender waits. Capacity 0 is a rendezvous: a sender and a receiver wait for each other.
//
// Every operation may be called by fibers of any runtime and by plain threads; where a fiber parks, a thread blocks.
// A channel lives as long as a handle on it, whatever becomes of nurseries.
//
// Elements are moved under the channel's lock, and what they were moved from is destroyed there: move constructor and
// destructor of T must not wait, nor use the same channel. If a move throws, the operation that called it throws; the
// element stays with its sender as far as T's move left it there, and nobody else is affected.
#pragma once

#include <chrono>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/channel_core.hpp>
#include <ramie/received.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

// What a handle that can send can do; Handle is the derived class.
template <class Handle, class T>
class send_operations {
 public:
  // Waits until a receiver has taken the element, or the buffer has room for it. False: the channel is closed, and the
  // element is still the caller's: it is moved from only if this returns true. A rendezvous send that is waiting when
  // the channel is closed is kept for receivers to come and returns true. A cancellation point; `cancelled` too leaves
  // the element where it is. Throws usage_error on an empty handle, std::bad_alloc on a thread's first wait.
  bool send(T&& element) const { return channel_send(core("send"), std::addressof(element)) == channel_status::ok; }
  bool send(const T& element) const {
    T copy(copy_of(element));
    return send(std::move(copy));
  }

  // Like send, but without waiting: ok, would_block or closed. Moved from only if ok. Not a cancellation point.
  [[nodiscard]] channel_status try_send(T&& element) const {
    return channel_try_send(core("try_send"), std::addressof(element));
  }
  [[nodiscard]] channel_status try_send(const T& element) const {
    T copy(copy_of(element));
    return try_send(std::move(copy));
  }

  // Like send, but waits no longer than `until`: ok, closed or timed_out. A point in time or a duration is a deadline.
  // Moved from only if ok. A cancellation point. Throws std::bad_alloc or std::system_error if the deadline can't be
  // kept.
  [[nodiscard]] channel_status send_until(T&& element, deadline until) const {
    return channel_send_until(core("send_until"), std::addressof(element), until.when());
  }
  [[nodiscard]] channel_status send_until(const T& element, deadline until) const {
    T copy(copy_of(element));
    return send_until(std::move(copy), until);
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status send_for(T&& element, std::chrono::duration<Rep, Period> limit) const {
    return send_until(std::move(element), limit);
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status send_for(const T& element, std::chrono::duration<Rep, Period> limit) const {
    return send_until(element, limit);
  }

 private:
  [[nodiscard]] static T copy_of(const T& element) {
    static_assert(std::is_copy_constructible_v<T>,
                  "ramie: this element can be moved, not copied. Send it by std::move(x): it is moved from only if it is "
                  "sent.");
    return element;
  }
  [[nodiscard]] channel_core& core(const char* operation) const {
    return handle_access::need(static_cast<const Handle&>(*this), operation);
  }
};

// What a handle that can receive can do.
template <class Handle, class T>
class recv_operations {
 public:
  // Waits for an element. Nothing: the channel is closed and drained. Throws what it was closed with, if it was closed
  // with an exception. A cancellation point. Throws usage_error on an empty handle, std::bad_alloc on a thread's first
  // wait.
  [[nodiscard]] std::optional<T> recv() const {
    std::optional<T> element;
    (void)recv_into(element, "recv", channel_recv);
    return element;
  }

  // Like recv, but without waiting: an element, or would_block, or closed. Not a cancellation point.
  [[nodiscard]] received<T> try_recv() const {
    return received<T>([this](std::optional<T>& element) { return recv_into(element, "try_recv", channel_try_recv); });
  }

  // Like recv, but waits no longer than `until`: an element, or closed, or timed_out. A point in time or a duration is
  // a deadline. A cancellation point. Throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] received<T> recv_until(deadline until) const {
    return received<T>([this, until](std::optional<T>& element) {
      return recv_into(element, "recv_until",
                       [until](channel_core& c, void* to) { return channel_recv_until(c, to, until.when()); });
    });
  }
  template <class Rep, class Period>
  [[nodiscard]] received<T> recv_for(std::chrono::duration<Rep, Period> limit) const {
    return recv_until(limit);
  }

  // for (T& element : channel): receives until the channel is closed and drained. Each step is a recv().
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;
    explicit iterator(const Handle& from) : from_(&from) { fetch(); }
    [[nodiscard]] T& operator*() const noexcept { return *current_; }
    [[nodiscard]] T* operator->() const noexcept { return std::addressof(*current_); }
    iterator& operator++() {
      current_.reset();  // an element is destroyed before the next one is waited for
      fetch();
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !current_.has_value(); }

   private:
    void fetch() { (void)from_->recv_into(current_, "recv", channel_recv); }
    const Handle* from_ = nullptr;
    mutable std::optional<T> current_;
  };
  // begin() receives the first one. A cancellation point, like each step; throws what recv() throws.
  [[nodiscard]] iterator begin() const { return iterator(static_cast<const Handle&>(*this)); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  // The element is moved straight from the sender or the buffer to its place. `element` is empty.
  template <class Operation>
  channel_status recv_into(std::optional<T>& element, const char* name, Operation operation) const {
    channel_core& c = handle_access::need(static_cast<const Handle&>(*this), name);
    auto status = channel_status::ok;
    if constexpr (moves_as_bytes<T>) {
      landing<T> here;
      status = operation(c, here.address());
      if (status == channel_status::ok) [[likely]]
        element.emplace(here.bytes());
    } else {
      status = operation(c, &element);
    }
    if (status == channel_status::closed) [[unlikely]]
      channel_rethrow(c);
    return status;
  }
};

// What anybody with a handle may ask. None of these is a cancellation point; size and is_closed are snapshots. All but
// valid throw usage_error on an empty handle.
template <class Handle>
class channel_queries {
 public:
  // How many elements there are to receive without waiting, those of waiting senders not included.
  [[nodiscard]] std::size_t size() const { return channel_size(core("size")); }
  // How many elements the buffer has room for, as it was made with; 0: a rendezvous.
  [[nodiscard]] std::size_t capacity() const { return channel_capacity(core("capacity")); }
  // Whether no more elements can be sent. There may still be some to receive.
  [[nodiscard]] bool is_closed() const { return channel_closed(core("is_closed")); }
  // Whether there is a channel behind the handle.
  [[nodiscard]] bool valid() const noexcept {
    return handle_access::core_of(static_cast<const Handle&>(*this)).get() != nullptr;
  }

 private:
  [[nodiscard]] channel_core& core(const char* operation) const {
    return handle_access::need(static_cast<const Handle&>(*this), operation);
  }
};

}  // namespace ramie::channel_internal

namespace ramie::inline v0 {

// Both ends of a channel in one handle. Copies are handles on the same channel; it closes only by close().
template <class T>
class channel : public ::ramie::channel_internal::send_operations<channel<T>, T>,
                public ::ramie::channel_internal::recv_operations<channel<T>, T>,
                public ::ramie::channel_internal::channel_queries<channel<T>> {
 public:
  using value_type = T;

  // An empty handle: no channel behind it. In a select it is never ready; any operation throws usage_error.
  channel() noexcept = default;
  // Room for `capacity` elements; 0: a rendezvous. Not a cancellation point. Throws std::bad_alloc.
  explicit channel(std::size_t capacity)
      : core_(make_channel_core(::ramie::channel_internal::element_ops_of<T>, capacity)) {}

  // No more elements are accepted. Receivers get what is there, then nothing; those that wait return now. Senders
  // that wait have been accepted: their elements go behind the buffer, in order, and they return true (if there is no
  // memory for that, or a move throws, false, with the element). Returns whether this call closed it; idempotent. Not a
  // cancellation point. Throws usage_error on an empty handle.
  bool close() const { return channel_close(core_.need(type_name, "close"), nullptr); }
  // Like close(), but receivers that have drained the channel get `why` thrown instead of nothing.
  bool close(std::exception_ptr why) const { return channel_close(core_.need(type_name, "close"), std::move(why)); }

  // Whether two handles are on the same channel.
  [[nodiscard]] friend bool operator==(const channel& a, const channel& b) noexcept {
    return a.core_.get() == b.core_.get();
  }

 private:
  friend struct ::ramie::channel_internal::handle_access;
  static constexpr const char* type_name = "channel";
  ::ramie::channel_internal::channel_ref core_;
};

// The sending end of a channel from make_channel. Copies count: when the last one goes, the channel closes.
template <class T>
class sender : public ::ramie::channel_internal::send_operations<sender<T>, T>,
               public ::ramie::channel_internal::channel_queries<sender<T>> {
 public:
  using value_type = T;

  sender() noexcept = default;  // empty, like channel()

  // Lets go of the channel now. Not a cancellation point.
  void reset() noexcept { *this = sender(); }
  // As channel::close.
  bool close() const { return channel_close(core_.need(type_name, "close"), nullptr); }
  bool close(std::exception_ptr why) const { return channel_close(core_.need(type_name, "close"), std::move(why)); }

 private:
  friend struct ::ramie::channel_internal::handle_access;
  static constexpr const char* type_name = "sender";
  explicit sender(const ::ramie::channel_internal::channel_ref& core) noexcept : core_(core) {}
  ::ramie::channel_internal::channel_end<::ramie::channel_internal::add_sender, ::ramie::channel_internal::drop_sender>
      core_;
};

// The receiving end. Copies count: when the last one goes, sends fail, those that wait too, and what was in the buffer
// is destroyed.
template <class T>
class receiver : public ::ramie::channel_internal::recv_operations<receiver<T>, T>,
                 public ::ramie::channel_internal::channel_queries<receiver<T>> {
 public:
  using value_type = T;

  receiver() noexcept = default;  // empty, like channel()

  // Lets go of the channel now. Not a cancellation point.
  void reset() noexcept { *this = receiver(); }

 private:
  friend struct ::ramie::channel_internal::handle_access;
  static constexpr const char* type_name = "receiver";
  explicit receiver(const ::ramie::channel_internal::channel_ref& core) noexcept : core_(core) {}
  ::ramie::channel_internal::channel_end<::ramie::channel_internal::add_receiver,
                                         ::ramie::channel_internal::drop_receiver>
      core_;
};

// What make_channel returns: the first handle on each end, to copy, move and give away.
template <class T>
struct channel_ends {
  sender<T> tx;
  receiver<T> rx;
};

// What can't be carried, with a sentence about it.
template <class T>
requires(!::ramie::channel_internal::is_value<T>) class channel<T> : ::ramie::channel_internal::must_be_value<T> {
 public:
  channel() = default;
  explicit channel(std::size_t) {}
};
template <class T>
requires(!::ramie::channel_internal::is_value<T>) class sender<T> : ::ramie::channel_internal::must_be_value<T> {};
template <class T>
requires(!::ramie::channel_internal::is_value<T>) class receiver<T> : ::ramie::channel_internal::must_be_value<T> {};
template <class T>
requires(!::ramie::channel_internal::is_value<T>) struct channel_ends<T> : ::ramie::channel_internal::must_be_value<T> {
};

// A channel by its ends: auto [tx, rx] = make_channel<T>(16); capacity 0: a rendezvous. Any fiber or thread. Not a
// cancellation point. Throws std::bad_alloc.
template <class T>
[[nodiscard]] channel_ends<T> make_channel(std::size_t capacity) {
  if constexpr (::ramie::channel_internal::is_value<T>) {
    ::ramie::channel_internal::channel_ref core(
        make_channel_core(::ramie::channel_internal::element_ops_of<T>, capacity));
    using access = ::ramie::channel_internal::handle_access;
    return {access::make<sender<T>>(core), access::make<receiver<T>>(core)};
  } else {
    return {};  // channel_ends<T> has said why not
  }
}

}  // namespace ramie::inline v0
