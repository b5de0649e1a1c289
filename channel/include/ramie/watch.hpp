// SPDX-License-Identifier: BSL-1.0
// The latest value of something, and waiting until it changes. Values in between may be missed: only the latest counts.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/broadcast_log.hpp>
#include <ramie/received.hpp>

namespace ramie::inline v0 {

// Sees the value and waits for the next one. A copy goes on by itself from the same generation. Used by one fiber or
// thread at a time. All but the constructor, generation() and valid() throw usage_error on an empty handle.
template <class T>
class watch_receiver {
 public:
  using value_type = T;
  watch_receiver() noexcept = default;  // empty

  // The latest value, shared and never changed; it counts as seen. Not a cancellation point.
  [[nodiscard]] std::shared_ptr<const T> get() {
    auto now = latest_entry(at_.need("watch_receiver", "get"));
    at_.position = now.written;
    return std::static_pointer_cast<const T>(std::move(now.entry));
  }
  // Like get, but the value does not count as seen. Not a cancellation point.
  [[nodiscard]] std::shared_ptr<const T> peek() const {
    return std::static_pointer_cast<const T>(latest_entry(at_.need("watch_receiver", "peek")).entry);
  }
  // Whether there is a value that was not seen. Not a cancellation point.
  [[nodiscard]] bool has_changed() const {
    return entries_written(at_.need("watch_receiver", "has_changed")) > at_.position;
  }

  // Waits until there is a value that was not seen, which counts as seen then. False: closed, and none will come. A
  // cancellation point.
  [[nodiscard]] bool changed() { return changed_until(deadline()) == channel_status::ok; }
  // Like changed, but waits no longer than `until`: ok, closed or timed_out. A point in time or a duration is a
  // deadline. Throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] channel_status changed_until(deadline until) {
    auto& log = at_.need("watch_receiver", "changed");
    const auto come = await_entry(log, at_.position, until.when(), ::ramie::channel_internal::log_kind::watch);
    if (come.status == channel_status::ok) at_.position = come.written;
    return come.status;
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status changed_for(std::chrono::duration<Rep, Period> limit) {
    return changed_until(limit);
  }
  // How many values were seen or skipped, the first included. Not a cancellation point.
  [[nodiscard]] std::uint64_t generation() const noexcept { return at_.position; }
  // Whether there is a watch behind the handle. Not a cancellation point.
  [[nodiscard]] bool valid() const noexcept { return at_.get() != nullptr; }

 private:
  template <::ramie::channel_internal::log_kind, class, class>
  friend class ::ramie::channel_internal::log_writer;
  explicit watch_receiver(::ramie::channel_internal::log_reader at) noexcept : at_(std::move(at)) {}
  friend struct ::ramie::runtime_internal::ready_access;
  [[nodiscard]] ::ramie::runtime_internal::ready_source as_ready_source() const noexcept {
    return at_.as_ready_source();
  }
  ::ramie::channel_internal::log_reader at_;
};

// Sets the value: send, subscribe (the present value counts as seen), close, is_closed, receivers, valid
// (detail/broadcast_log.hpp). Copies are the same watch; when the last one goes, it closes, and the value stays.
template <class T>
class watch
    : public ::ramie::channel_internal::log_writer<::ramie::channel_internal::log_kind::watch, T, watch_receiver<T>> {
 public:
  watch() noexcept = default;  // empty
  // With a value to begin with. Not a cancellation point. Throws std::bad_alloc and what moving T throws.
  explicit watch(T first)
      : watch::log_writer(
            ::ramie::channel_internal::make_broadcast_log(1, std::make_shared<const T>(std::move(first)))) {}

  // The present value, shared and never changed. Not a cancellation point. Throws usage_error on an empty handle.
  [[nodiscard]] std::shared_ptr<const T> get() const {
    return std::static_pointer_cast<const T>(latest_entry(this->need("get")).entry);
  }
};

}  // namespace ramie::inline v0
