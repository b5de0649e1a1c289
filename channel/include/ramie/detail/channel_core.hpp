// SPDX-License-Identifier: BSL-1.0
// What the templates of channel.hpp and select.hpp call. Not part of the API.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include <ramie/detail/element.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// How an operation on a channel ended.
enum class channel_status : std::uint8_t {
  ok,           // an element was sent or received
  would_block,  // try_…: not without waiting
  closed,       // the channel is closed, and for a receive: drained
  timed_out,    // …_for, …_until: not in time
};

[[nodiscard]] const char* to_string(channel_status status) noexcept;

}  // namespace ramie::inline v0

namespace ramie::detail {

class channel_core;
using channel_time = std::chrono::steady_clock::time_point;

// One reference. Throws std::bad_alloc.
[[nodiscard]] channel_core* make_channel_core(const element_ops& ops, std::size_t capacity);
void retain(channel_core& c) noexcept;
void release(channel_core& c) noexcept;

// `element` is a T that is moved from exactly if the result is ok; `to` is a landing<T>'s address. Blocking ones are
// cancellation points.
[[nodiscard]] channel_status channel_send(channel_core& c, void* element);
[[nodiscard]] channel_status channel_recv(channel_core& c, void* to);
[[nodiscard]] channel_status channel_try_send(channel_core& c, void* element);
[[nodiscard]] channel_status channel_try_recv(channel_core& c, void* to);
[[nodiscard]] channel_status channel_send_until(channel_core& c, void* element, channel_time deadline);
[[nodiscard]] channel_status channel_recv_until(channel_core& c, void* to, channel_time deadline);

// Whether this call closed it.
bool channel_close(channel_core& c, std::exception_ptr why) noexcept;
// After a receive said closed: throws what the channel was closed with, if it was.
void channel_rethrow(channel_core& c);

[[nodiscard]] std::size_t channel_len(const channel_core& c) noexcept;
[[nodiscard]] std::size_t channel_capacity(const channel_core& c) noexcept;
[[nodiscard]] bool channel_closed(const channel_core& c) noexcept;

// Counted ends: the last sender closes, the last receiver abandons.
void add_sender(channel_core& c) noexcept;
void drop_sender(channel_core& c) noexcept;
void add_receiver(channel_core& c) noexcept;
void drop_receiver(channel_core& c) noexcept;

// An operation on a handle without a channel behind it: throws usage_error.
[[noreturn]] void no_such_channel();

// A counted pointer to a core.
class channel_ref {
 public:
  channel_ref() noexcept = default;
  explicit channel_ref(channel_core* adopted) noexcept : core_(adopted) {}
  channel_ref(const channel_ref& other) noexcept : core_(other.core_) {
    if (core_ != nullptr) retain(*core_);
  }
  channel_ref(channel_ref&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  channel_ref& operator=(const channel_ref& other) noexcept {
    channel_ref taken(other);
    std::swap(core_, taken.core_);
    return *this;
  }
  channel_ref& operator=(channel_ref&& other) noexcept {
    channel_ref taken(std::move(other));
    std::swap(core_, taken.core_);
    return *this;
  }
  ~channel_ref() {
    if (core_ != nullptr) release(*core_);
  }
  [[nodiscard]] channel_core* get() const noexcept { return core_; }
  [[nodiscard]] channel_core& operator*() const {
    if (core_ == nullptr) [[unlikely]]
      no_such_channel();
    return *core_;
  }

 private:
  channel_core* core_ = nullptr;
};

}  // namespace ramie::detail
