// SPDX-License-Identifier: BSL-1.0
// What the templates of channel.hpp and select.hpp call. Not part of the API.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>

#include <ramie/detail/element.hpp>
#include <ramie/received.hpp>

namespace ramie::channel_internal {

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

// Returns whether this call closed it.
bool channel_close(channel_core& c, std::exception_ptr why) noexcept;
// After a receive said closed: throws what the channel was closed with, if it was.
void channel_rethrow(channel_core& c);

[[nodiscard]] std::size_t channel_size(const channel_core& c) noexcept;
[[nodiscard]] std::size_t channel_capacity(const channel_core& c) noexcept;
[[nodiscard]] bool channel_closed(const channel_core& c) noexcept;

// Counted ends: dropping the last sender closes the channel; dropping the last receiver closes it, too, gives waiting
// senders their elements back and destroys what is in the buffer.
void add_sender(channel_core& c) noexcept;
void drop_sender(channel_core& c) noexcept;
void add_receiver(channel_core& c) noexcept;
void drop_receiver(channel_core& c) noexcept;

// `operation` of a handle without a channel behind it: throws usage_error.
// `type::operation` of a handle without a channel behind it: throws usage_error.
[[noreturn]] void no_such_channel(const char* type, const char* operation);

// A counted pointer to a core.
class channel_ref {
 public:
  channel_ref() noexcept = default;
  explicit channel_ref(channel_core* adopted) noexcept : core_(adopted) {}
  channel_ref(const channel_ref& other) noexcept : core_(other.core_) {
    if (core_ != nullptr) retain(*core_);
  }
  channel_ref(channel_ref&& other) noexcept : core_(std::exchange(other.core_, nullptr)) {}
  channel_ref& operator=(channel_ref other) noexcept {
    swap(other);
    return *this;
  }
  void swap(channel_ref& other) noexcept { std::swap(core_, other.core_); }
  ~channel_ref() {
    if (core_ != nullptr) release(*core_);
  }
  [[nodiscard]] channel_core* get() const noexcept { return core_; }
  // The core, for that operation of that type.
  [[nodiscard]] channel_core& need(const char* type, const char* operation) const {
    if (core_ == nullptr) [[unlikely]]
      no_such_channel(type, operation);
    return *core_;
  }

 private:
  channel_core* core_ = nullptr;
};

// One that also counts as an end of the channel.
template <void (*add)(channel_core&) noexcept, void (*drop)(channel_core&) noexcept>
class channel_end : public channel_ref {
 public:
  channel_end() noexcept = default;
  explicit channel_end(const channel_ref& core) noexcept : channel_ref(core) {
    if (get() != nullptr) add(*get());
  }
  channel_end(const channel_end& other) noexcept : channel_end(static_cast<const channel_ref&>(other)) {}
  channel_end(channel_end&& other) noexcept = default;
  channel_end& operator=(channel_end other) noexcept {
    swap(other);
    return *this;
  }
  ~channel_end() {
    if (get() != nullptr) drop(*get());
  }
};

// The one way to the core of a channel, sender or receiver, and from a core to an end; they make this their friend.
struct handle_access {
  template <class End>
  [[nodiscard]] static End make(const channel_ref& core) noexcept {
    return End(core);
  }
  template <class Handle>
  [[nodiscard]] static auto core_of(const Handle& h) noexcept -> decltype(static_cast<const channel_ref&>(h.core_)) {
    return h.core_;
  }
  template <class Handle>
  [[nodiscard]] static channel_core& need(const Handle& h, const char* operation) {
    return h.core_.need(Handle::type_name, operation);
  }
};

}  // namespace ramie::channel_internal
