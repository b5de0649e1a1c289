// SPDX-License-Identifier: BSL-1.0
// Every receiver gets every message. The sender never waits: a receiver that falls behind loses the oldest messages and
// learns how many.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/broadcast_log.hpp>
#include <ramie/received.hpp>

namespace ramie::inline v0 {

// A receiver with a position of its own. A copy starts at the same position and goes on by itself. Used by one fiber or
// thread at a time. All but the constructor and valid() throw usage_error on an empty handle.
template <class T>
class broadcast_receiver {
 public:
  using value_type = T;
  broadcast_receiver() noexcept = default;  // empty

  // The next message, or the oldest that is still there; lost() says how many were missed. Without a value: closed and
  // all received. A cancellation point. Throws what copying T throws: the message is then still the next one.
  [[nodiscard]] received<T> recv() { return recv_until(deadline()); }
  // Like recv, but waits no longer than `until`. A point in time or a duration is a deadline. Throws std::bad_alloc or
  // std::system_error if the deadline can't be kept.
  [[nodiscard]] received<T> recv_until(deadline until) {
    auto& log = at_.need("broadcast_receiver", "recv");
    const auto status =
        await_entry(log, at_.position, until.when(), ::ramie::channel_internal::log_kind::broadcast).status;
    if (status != channel_status::ok) return received<T>([status](std::optional<T>&) { return status; });
    return copied(read_awaited(log, at_.position));
  }
  template <class Rep, class Period>
  [[nodiscard]] received<T> recv_for(std::chrono::duration<Rep, Period> limit) {
    return recv_until(limit);
  }
  // Like recv, but without waiting: would_block if there is nothing new. Not a cancellation point.
  [[nodiscard]] received<T> try_recv() {
    return copied(try_read(at_.need("broadcast_receiver", "try_recv"), at_.position));
  }
  // Whether there is a broadcast behind the handle. Not a cancellation point.
  [[nodiscard]] bool valid() const noexcept { return at_.get() != nullptr; }

 private:
  template <::ramie::channel_internal::log_kind, class, class>
  friend class ::ramie::channel_internal::log_writer;
  explicit broadcast_receiver(::ramie::channel_internal::log_reader at) noexcept : at_(std::move(at)) {}
  friend struct ::ramie::runtime_internal::ready_access;
  [[nodiscard]] ::ramie::runtime_internal::ready_source as_ready_source() const noexcept {
    return at_.as_ready_source();
  }
  [[nodiscard]] received<T> copied(const ::ramie::channel_internal::log_reading& found) {
    const auto copy = [&](std::optional<T>& message) {
      if (found.status != channel_status::ok) return found.status;
      message.emplace(*static_cast<const T*>(found.entry.get()));
      at_.position = found.next;
      return channel_status::ok;
    };
    return received<T>(copy, found.lost);
  }
  ::ramie::channel_internal::log_reader at_;
};

// The sending side: send, subscribe, close, is_closed, receivers, valid (detail/broadcast_log.hpp). Copies are the same
// broadcast; when the last one goes, it closes.
template <class T>
class broadcast : public ::ramie::channel_internal::log_writer<::ramie::channel_internal::log_kind::broadcast, T,
                                                               broadcast_receiver<T>> {
 public:
  broadcast() noexcept = default;  // empty
  // Keeps the last `capacity` messages, at least 1. Not a cancellation point. Throws usage_error for capacity 0,
  // std::bad_alloc.
  explicit broadcast(std::size_t capacity)
      : broadcast::log_writer(::ramie::channel_internal::make_broadcast_log(capacity, nullptr)) {
    static_assert(std::is_copy_constructible_v<T>,
                  "ramie: a broadcast copies its messages, one for each receiver, and this type can't be copied. Send a "
                  "std::shared_ptr<const T>.");
  }
};

}  // namespace ramie::inline v0
