// SPDX-License-Identifier: BSL-1.0
// The latest value of something, and being told when it changes. Values in between may be missed: only the latest
// counts.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/detail/bulletin.hpp>

namespace ramie::inline v0 {

// Sees the value and waits for the next one. A copy goes on by itself from the same generation. Used by one fiber or
// thread at a time.
template <class T>
class watch_receiver {
 public:
  using value_type = T;
  watch_receiver() noexcept = default;
  explicit watch_receiver(::ramie::detail::reader_ref at) noexcept : at_(std::move(at)) {}

  // The latest value, shared and never changed; it counts as seen. Not a cancellation point.
  [[nodiscard]] std::shared_ptr<const T> get() {
    const auto now = latest(*at_);
    at_.position = now.posted;
    return std::static_pointer_cast<const T>(now.what);
  }
  // The same, but it does not count as seen.
  [[nodiscard]] std::shared_ptr<const T> look() const { return std::static_pointer_cast<const T>(latest(*at_).what); }
  // Whether there is a value that was not seen. Not a cancellation point.
  [[nodiscard]] bool has_changed() const { return posted(*at_) > at_.position; }

  // Waits until there is a value that was not seen, which counts as seen then. False: closed, and none will come. A
  // cancellation point.
  [[nodiscard]] bool changed() {
    return changed_until(std::chrono::steady_clock::time_point::max()) == channel_status::ok;
  }
  // The same, no longer than that: ok, closed or timed_out. Throws std::bad_alloc or std::system_error if the deadline
  // can't be kept.
  [[nodiscard]] channel_status changed_until(std::chrono::steady_clock::time_point deadline) {
    const auto status = await_notice(*at_, at_.position, deadline, ::ramie::detail::notice_kind::change);
    if (status == channel_status::ok) at_.position = posted(*at_);
    return status;
  }
  template <class Rep, class Period>
  [[nodiscard]] channel_status changed_for(std::chrono::duration<Rep, Period> limit) {
    return changed_until(::ramie::detail::time_after(limit));
  }
  // How many values were seen or skipped, the first included.
  [[nodiscard]] std::uint64_t generation() const noexcept { return at_.position; }
  [[nodiscard]] bool valid() const noexcept { return at_.valid(); }

  // For select's on_join; not part of the API.
  [[nodiscard]] ::ramie::detail::join_target join_source() const noexcept { return at_.join_source(); }

 private:
  ::ramie::detail::reader_ref at_;
};

// Sets the value: send, subscribe (having seen the present value), close (detail/bulletin.hpp). Copies are the same
// watch; when the last one goes, it closes, and the value stays.
template <class T>
class watch : public ::ramie::detail::posts<T, watch_receiver<T>> {
 public:
  watch() noexcept = default;
  // Throws std::bad_alloc and what moving T throws.
  explicit watch(T first)
      : ::ramie::detail::posts<T, watch_receiver<T>>(
            ::ramie::detail::make_bulletin(1, std::make_shared<const T>(std::move(first)))) {}

  // The present value, shared and never changed.
  [[nodiscard]] std::shared_ptr<const T> get() const {
    return std::static_pointer_cast<const T>(latest(this->board()).what);
  }
};

}  // namespace ramie::inline v0
