// SPDX-License-Identifier: BSL-1.0
// Every receiver gets every message. The sender never waits: a receiver that falls behind loses the oldest messages and
// is told how many.
#pragma once

#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/detail/bulletin.hpp>

namespace ramie::inline v0 {

// What a receiver of a broadcast found: a message, or why there is none.
template <class T>
class broadcast_message : public received<T> {
 public:
  // `lost` is read after `fetch` was called.
  template <std::invocable<std::optional<T>&> Fetch>
  broadcast_message(Fetch&& fetch, const std::uint64_t& lost) : received<T>(std::forward<Fetch>(fetch)), lost_(lost) {}

  // Messages before this one that were overwritten before they could be received.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  std::uint64_t lost_;
};

// A receiver with a position of its own. A copy starts at the same position and goes on by itself. Used by one fiber or
// thread at a time.
template <class T>
class broadcast_receiver {
 public:
  using value_type = T;
  broadcast_receiver() noexcept = default;
  explicit broadcast_receiver(::ramie::detail::reader_ref at) noexcept : at_(std::move(at)) {}

  // The next message, or the oldest that is still there, with the number of those lost. Without a value: closed and all
  // read. A cancellation point. Throws what copying T throws: the message is then still the next one.
  [[nodiscard]] broadcast_message<T> recv() { return recv_until(std::chrono::steady_clock::time_point::max()); }
  // The same, no longer than that. Throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] broadcast_message<T> recv_until(std::chrono::steady_clock::time_point deadline) {
    const auto status = await_notice(*at_, at_.position, deadline, ::ramie::detail::notice_kind::message);
    if (status != channel_status::ok) return {[status](std::optional<T>&) { return status; }, 0};
    return copied(read_awaited(*at_, at_.position));
  }
  template <class Rep, class Period>
  [[nodiscard]] broadcast_message<T> recv_for(std::chrono::duration<Rep, Period> limit) {
    return recv_until(::ramie::detail::time_after(limit));
  }
  // The same without waiting: would_block if there is nothing new. Not a cancellation point.
  [[nodiscard]] broadcast_message<T> try_recv() { return copied(try_read(*at_, at_.position)); }
  [[nodiscard]] bool valid() const noexcept { return at_.valid(); }

  // For select's on_join; not part of the API.
  [[nodiscard]] ::ramie::detail::join_target join_source() const noexcept { return at_.join_source(); }

 private:
  [[nodiscard]] broadcast_message<T> copied(const ::ramie::detail::bulletin_reading& found) {
    const auto copy = [&](std::optional<T>& message) {
      if (found.status != channel_status::ok) return found.status;
      message.emplace(*static_cast<const T*>(found.what.get()));
      at_.position = found.next;
      return channel_status::ok;
    };
    return {copy, found.lost};
  }
  ::ramie::detail::reader_ref at_;
};

// The sending side: send, subscribe, close (detail/bulletin.hpp). Copies are the same broadcast; when the last one
// goes, it closes.
template <class T>
class broadcast : public ::ramie::detail::posts<T, broadcast_receiver<T>> {
 public:
  broadcast() noexcept = default;
  // Keeps the last `capacity` messages, at least 1. Throws usage_error, std::bad_alloc.
  explicit broadcast(std::size_t capacity)
      : ::ramie::detail::posts<T, broadcast_receiver<T>>(::ramie::detail::make_bulletin(capacity, nullptr)) {
    static_assert(std::is_copy_constructible_v<T>,
                  "ramie: a broadcast copies its messages, one for each receiver, and this type can't be copied. Send a "
                  "std::shared_ptr<const T>.");
  }
};

}  // namespace ramie::inline v0
