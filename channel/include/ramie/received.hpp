// SPDX-License-Identifier: BSL-1.0
// What a receive found: an element, or why there is none. One type for channels, oneshots and broadcasts.
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include <ramie/version.hpp>

namespace ramie::inline v0 {

// How an operation on a channel, oneshot, broadcast or watch ended.
enum class channel_status : std::uint8_t {
  ok,           // an element was sent or received
  would_block,  // try_…: not without waiting
  closed,       // it is closed, and for a receive: drained
  timed_out,    // …_for, …_until: not in time
};

// In words, for messages: "ok", "would block" ….
[[nodiscard]] const char* to_string(channel_status status) noexcept;

// Thrown by received<T>::value() when there is no element. what() says why, and what to ask instead.
class bad_received_access : public std::bad_optional_access {
 public:
  explicit bad_received_access(channel_status status) noexcept : status_(status) {}
  [[nodiscard]] const char* what() const noexcept override;
  // would_block, closed or timed_out.
  [[nodiscard]] channel_status status() const noexcept { return status_; }

 private:
  channel_status status_;
};

// An element, or why there is none. Belongs to its caller like a std::optional<T>; nothing here waits.
template <class T>
class received {
 public:
  // Made by receives: `fetch` puts an element into the optional it is given, or says why not. Throws what it throws.
  template <std::invocable<std::optional<T>&> Fetch>
  explicit received(Fetch&& fetch, std::uint64_t lost = 0) : status_(fetch(value_)), lost_(lost) {}

  // ok if there is an element, else why there is none.
  [[nodiscard]] channel_status status() const noexcept { return status_; }
  // Whether there is an element.
  [[nodiscard]] bool has_value() const noexcept { return value_.has_value(); }
  [[nodiscard]] explicit operator bool() const noexcept { return value_.has_value(); }

  // The element. Throws bad_received_access if there is none.
  [[nodiscard]] T& value() & { return *checked(); }
  [[nodiscard]] const T& value() const& { return *const_cast<received*>(this)->checked(); }
  [[nodiscard]] T&& value() && { return std::move(*checked()); }

  // The element. There must be one.
  [[nodiscard]] T& operator*() & noexcept { return *value_; }
  [[nodiscard]] const T& operator*() const& noexcept { return *value_; }
  [[nodiscard]] T&& operator*() && noexcept { return *std::move(value_); }
  [[nodiscard]] T* operator->() noexcept { return std::addressof(*value_); }
  [[nodiscard]] const T* operator->() const noexcept { return std::addressof(*value_); }

  // The element or nothing, as recv() of a channel returns it.
  [[nodiscard]] std::optional<T> to_optional() && { return std::move(value_); }

  // Of a broadcast: messages before this one that were overwritten before they could be received. Else 0.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }

 private:
  [[nodiscard]] std::optional<T>& checked() {
    if (!value_.has_value()) [[unlikely]]
      throw bad_received_access(status_);
    return value_;
  }

  std::optional<T> value_;
  channel_status status_;
  std::uint64_t lost_;
};

}  // namespace ramie::inline v0
