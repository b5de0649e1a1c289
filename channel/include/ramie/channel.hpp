// SPDX-License-Identifier: BSL-1.0
// Channels: how fibers meet.
//
// A channel carries elements of one type from senders to receivers, first in, first out. A waiting partner gets the
// element directly, moved from the sender's variable into the receiver's; else it waits in the buffer; if there is no
// room, the sender waits. Capacity 0 is a rendezvous: nothing waits but people.
//
// Every operation may be called by fibers of any runtime and by plain threads; where a fiber parks, a thread blocks.
// A channel lives as long as a handle on it, whatever becomes of nurseries.
//
// Elements are moved under the channel's lock, and what they were moved from is destroyed there: move constructor and
// destructor of T must not wait, nor use the same channel. If a move throws, the operation that called it throws; the
// element stays with its sender as far as T's move left it there, and nobody else is affected.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <exception>
#include <iterator>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/detail/channel_core.hpp>

namespace ramie::inline v0 {

// What a receive that may come back empty-handed found: an element, or why there is none.
template <class T>
class received {
 public:
  // `fetch` puts an element into the optional it is given, or says why not.
  template <std::invocable<std::optional<T>&> Fetch>
  explicit received(Fetch&& fetch) : status_(fetch(value_)) {}

  [[nodiscard]] channel_status status() const noexcept { return status_; }
  [[nodiscard]] explicit operator bool() const noexcept { return value_.has_value(); }
  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  [[nodiscard]] T&& operator*() && noexcept { return *std::move(value_); }
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }
  [[nodiscard]] T* operator->() noexcept { return std::addressof(*value_); }
  [[nodiscard]] const T* operator->() const noexcept { return std::addressof(*value_); }
  // The element, or nothing.
  [[nodiscard]] std::optional<T>& value() & noexcept { return value_; }
  [[nodiscard]] std::optional<T>&& value() && noexcept { return std::move(value_); }

 private:
  std::optional<T> value_;
  channel_status status_;
};

}  // namespace ramie::inline v0

namespace ramie::detail {

// What senders can do; Handle is the derived class.
template <class Handle, class T>
class sends {
 public:
  // Waits until a receiver has taken the element, or the buffer has room for it. False: the channel is closed, and the
  // element is still the caller's: it is moved from only if this returns true. A rendezvous send that is waiting when
  // the channel is closed is kept for receivers to come and returns true. A cancellation point; `cancelled` too leaves
  // the element where it is. Throws usage_error on an empty handle, std::bad_alloc on a thread's first wait.
  bool send(T&& element) const { return channel_send(core(), std::addressof(element)) == channel_status::ok; }
  bool send(const T& element) const {
    T copy(copy_of(element));
    return send(std::move(copy));
  }

  // The same without waiting: ok, would_block or closed. Moved from only if ok. Not a cancellation point.
  [[nodiscard]] channel_status try_send(T&& element) const { return channel_try_send(core(), std::addressof(element)); }
  [[nodiscard]] channel_status try_send(const T& element) const {
    T copy(copy_of(element));
    return try_send(std::move(copy));
  }

  // The same, waiting no longer than that: ok, closed or timed_out. Moved from only if ok. A cancellation point. Throws
  // std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] channel_status send_until(T&& element, std::chrono::steady_clock::time_point deadline) const {
    return channel_send_until(core(), std::addressof(element), deadline);
  }
  [[nodiscard]] channel_status send_until(const T& element, std::chrono::steady_clock::time_point deadline) const {
    T copy(copy_of(element));
    return send_until(std::move(copy), deadline);
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status send_for(T&& element, std::chrono::duration<Rep, Period> limit) const {
    return send_until(std::move(element), time_after(limit));
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status send_for(const T& element, std::chrono::duration<Rep, Period> limit) const {
    return send_until(element, time_after(limit));
  }

 private:
  [[nodiscard]] static T copy_of(const T& element) {
    static_assert(std::is_copy_constructible_v<T>,
                  "ramie: this element can be moved, not copied. Send it by std::move(x): it is moved from only if it is "
                  "sent.");
    return element;
  }
  [[nodiscard]] channel_core& core() const { return *static_cast<const Handle&>(*this).internals(); }
};

template <class Handle, class T>
class receives {
 public:
  // Waits for an element. Nothing: the channel is closed and drained. Throws what it was closed with, if it was closed
  // with an exception. A cancellation point. Throws usage_error on an empty handle, std::bad_alloc on a thread's first
  // wait.
  [[nodiscard]] std::optional<T> recv() const {
    std::optional<T> element;
    (void)recv_into(element, channel_recv);
    return element;
  }

  // The same without waiting: an element, or would_block, or closed. Not a cancellation point.
  [[nodiscard]] received<T> try_recv() const {
    return received<T>([this](std::optional<T>& element) { return recv_into(element, channel_try_recv); });
  }

  // The same, waiting no longer than that: an element, or closed, or timed_out. A cancellation point. Throws
  // std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] received<T> recv_until(std::chrono::steady_clock::time_point deadline) const {
    return received<T>([this, deadline](std::optional<T>& element) {
      return recv_into(element, [deadline](channel_core& c, void* to) { return channel_recv_until(c, to, deadline); });
    });
  }
  template <class Rep, class Period>
  [[nodiscard]] received<T> recv_for(std::chrono::duration<Rep, Period> limit) const {
    return recv_until(time_after(limit));
  }

  // for (T& element : channel): receives until the channel is closed and drained. Each step is a recv().
  class iterator {
   public:
    using iterator_concept = std::input_iterator_tag;
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    iterator() noexcept = default;
    explicit iterator(const Handle& from) : from_(&from) { (void)from_->recv_into(current_, channel_recv); }
    [[nodiscard]] T& operator*() const noexcept { return *current_; }
    [[nodiscard]] T* operator->() const noexcept { return std::addressof(*current_); }
    iterator& operator++() {
      current_.reset();  // an element is gone before the next one is waited for
      (void)from_->recv_into(current_, channel_recv);
      return *this;
    }
    void operator++(int) { ++*this; }
    [[nodiscard]] bool operator==(std::default_sentinel_t) const noexcept { return !current_.has_value(); }

   private:
    const Handle* from_ = nullptr;
    mutable std::optional<T> current_;
  };
  [[nodiscard]] iterator begin() const { return iterator(static_cast<const Handle&>(*this)); }
  [[nodiscard]] std::default_sentinel_t end() const noexcept { return {}; }

 private:
  [[nodiscard]] channel_core& core() const { return *static_cast<const Handle&>(*this).internals(); }
  // Moved straight from the sender or the buffer to its place. `element` is empty.
  template <class Operation>
  channel_status recv_into(std::optional<T>& element, Operation operation) const {
    channel_core& c = core();
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

// What anybody with a handle may ask. None of these is a cancellation point; len and is_closed are snapshots. All throw
// usage_error on an empty handle.
template <class Handle>
class answers {
 public:
  // Elements that are waiting to be received, those of waiting senders not included.
  [[nodiscard]] std::size_t len() const { return channel_len(core()); }
  [[nodiscard]] std::size_t capacity() const { return channel_capacity(core()); }
  // Whether no more elements can be sent. There may still be some to receive.
  [[nodiscard]] bool is_closed() const { return channel_closed(core()); }

 private:
  [[nodiscard]] channel_core& core() const { return *static_cast<const Handle&>(*this).internals(); }
};

}  // namespace ramie::detail

namespace ramie::inline v0 {

// Both ends of a channel in one handle. Copies are handles on the same channel; it closes only when told to.
template <class T>
class channel : public ::ramie::detail::sends<channel<T>, T>,
                public ::ramie::detail::receives<channel<T>, T>,
                public ::ramie::detail::answers<channel<T>> {
 public:
  using value_type = T;

  // An empty handle: no channel behind it. In a select it is never ready; anything else is a usage_error.
  channel() noexcept = default;
  // Room for `capacity` elements; 0: a rendezvous. Throws std::bad_alloc.
  explicit channel(std::size_t capacity) : core_(make_channel_core(::ramie::detail::element_ops_of<T>, capacity)) {}

  // No more elements are accepted. Receivers get what is there, then nothing; those that wait are told now. Senders
  // that wait have been accepted: their elements go behind the buffer, in order, and they return true (if there is no
  // memory for that, or a move throws, false, with the element). Returns whether this call closed it; again is
  // harmless. Not a cancellation point.
  bool close() const { return channel_close(*core_, nullptr); }
  // The same, and receivers that have drained the channel get this thrown instead of nothing.
  bool close(std::exception_ptr why) const { return channel_close(*core_, std::move(why)); }

  // Whether there is a channel behind the handle.
  [[nodiscard]] bool valid() const noexcept { return core_.get() != nullptr; }
  // Whether two handles are on the same channel.
  [[nodiscard]] friend bool operator==(const channel& a, const channel& b) noexcept {
    return a.core_.get() == b.core_.get();
  }

  // For select; not part of the API.
  [[nodiscard]] const ::ramie::detail::channel_ref& internals() const noexcept { return core_; }

 private:
  ::ramie::detail::channel_ref core_;
};

// The sending end of a channel from make_channel. Copies count: when the last one goes, the channel closes.
template <class T>
class sender : public ::ramie::detail::sends<sender<T>, T>, public ::ramie::detail::answers<sender<T>> {
 public:
  using value_type = T;

  sender() noexcept = default;  // empty, like channel()
  explicit sender(::ramie::detail::channel_ref core) noexcept : core_(std::move(core)) { count(); }
  sender(const sender& other) noexcept : core_(other.core_) { count(); }
  sender(sender&& other) noexcept = default;
  sender& operator=(const sender& other) noexcept {
    sender taken(other);
    std::swap(core_, taken.core_);
    return *this;
  }
  sender& operator=(sender&& other) noexcept {
    sender taken(std::move(other));
    std::swap(core_, taken.core_);
    return *this;
  }
  ~sender() {
    if (auto* const c = core_.get()) drop_sender(*c);
  }

  // Lets go of the channel now.
  void reset() noexcept { *this = sender(); }
  // Closes with an exception that receivers get after what is there; see channel::close.
  bool close(std::exception_ptr why) const { return channel_close(*core_, std::move(why)); }
  bool close() const { return channel_close(*core_, nullptr); }
  [[nodiscard]] bool valid() const noexcept { return core_.get() != nullptr; }

  [[nodiscard]] const ::ramie::detail::channel_ref& internals() const noexcept { return core_; }

 private:
  void count() noexcept {
    if (auto* const c = core_.get()) add_sender(*c);
  }
  ::ramie::detail::channel_ref core_;
};

// The receiving end. Copies count: when the last one goes, sends fail, those that wait too, and what was in the buffer
// is destroyed.
template <class T>
class receiver : public ::ramie::detail::receives<receiver<T>, T>, public ::ramie::detail::answers<receiver<T>> {
 public:
  using value_type = T;

  receiver() noexcept = default;  // empty, like channel()
  explicit receiver(::ramie::detail::channel_ref core) noexcept : core_(std::move(core)) { count(); }
  receiver(const receiver& other) noexcept : core_(other.core_) { count(); }
  receiver(receiver&& other) noexcept = default;
  receiver& operator=(const receiver& other) noexcept {
    receiver taken(other);
    std::swap(core_, taken.core_);
    return *this;
  }
  receiver& operator=(receiver&& other) noexcept {
    receiver taken(std::move(other));
    std::swap(core_, taken.core_);
    return *this;
  }
  ~receiver() {
    if (auto* const c = core_.get()) drop_receiver(*c);
  }

  // Lets go of the channel now.
  void reset() noexcept { *this = receiver(); }
  [[nodiscard]] bool valid() const noexcept { return core_.get() != nullptr; }

  [[nodiscard]] const ::ramie::detail::channel_ref& internals() const noexcept { return core_; }

 private:
  void count() noexcept {
    if (auto* const c = core_.get()) add_receiver(*c);
  }
  ::ramie::detail::channel_ref core_;
};

template <class T>
struct channel_ends {
  sender<T> tx;
  receiver<T> rx;
};

// What can't be carried, with a sentence about it.
template <class T>
requires(!::ramie::detail::is_value<T>) class channel<T> : ::ramie::detail::must_be_value<T> {
 public:
  channel() = default;
  explicit channel(std::size_t) {}
};
template <class T>
requires(!::ramie::detail::is_value<T>) class sender<T> : ::ramie::detail::must_be_value<T> {};
template <class T>
requires(!::ramie::detail::is_value<T>) class receiver<T> : ::ramie::detail::must_be_value<T> {};
template <class T>
requires(!::ramie::detail::is_value<T>) struct channel_ends<T> : ::ramie::detail::must_be_value<T> {};

// A channel by its ends: auto [tx, rx] = make_channel<T>(16). Throws std::bad_alloc.
template <class T>
[[nodiscard]] channel_ends<T> make_channel(std::size_t capacity) {
  if constexpr (::ramie::detail::is_value<T>) {
    ::ramie::detail::channel_ref core(make_channel_core(::ramie::detail::element_ops_of<T>, capacity));
    return {sender<T>(core), receiver<T>(core)};
  } else {
    return {};  // channel_ends<T> has said why not
  }
}

}  // namespace ramie::inline v0
