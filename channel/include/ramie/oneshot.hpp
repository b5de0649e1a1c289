// SPDX-License-Identifier: BSL-1.0
// One value, once, from one sender to one receiver.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/atomic.hpp>
#include <ramie/detail/channel_core.hpp>
#include <ramie/detail/ready_source.hpp>
#include <ramie/received.hpp>

namespace ramie::runtime_internal {
class fiber;
struct keyed_waiter;
}  // namespace ramie::runtime_internal

namespace ramie::channel_internal {

using namespace runtime_internal;

// The two ends share this block, and nothing else is ever allocated.
//
//   EMPTY ----send----> VALUE_SENT          the value is there and belongs to the receiver
//     |  \---close----> CLOSED              one end has gone without a value
//     |                    ^
//   RECEIVER_WAITING ------+--> VALUE_SENT  the same; the sender, or the end that goes, wakes `who`
//
// Only the receiver goes from EMPTY to RECEIVER_WAITING, after it has written `who` and `ticket`, and back. The other
// end, when it leaves RECEIVER_WAITING, reads them, wakes the receiver, and sets `wake_done`. The wake carries a ticket
// and no outcome: the receiver looks at the state. If it finds that the other end has left RECEIVER_WAITING, it waits
// for `wake_done`: until then the other end uses its frame.
struct oneshot_core {
  enum state : std::uint8_t { empty, receiver_waiting, value_sent, closed };
  atomic<std::uint8_t> now{empty};
  atomic<std::uint8_t> references{2};
  atomic<bool> wake_done{false};
  bool published = false;  // owned by the receiver: it went to RECEIVER_WAITING and has not unpublished
  fiber* who = nullptr;
  std::uint64_t ticket = 0;
};

// Called by the sender when the value is in place, and by either end when it goes. Returns the state before.
std::uint8_t oneshot_settle(oneshot_core& core, oneshot_core::state to) noexcept;
// Called by the receiver: waits until the state is final. A cancellation point. False: the deadline came first.
[[nodiscard]] bool oneshot_wait(oneshot_core& core, channel_time deadline);
// For select.
[[nodiscard]] ready_source oneshot_ready_source(oneshot_core& core) noexcept;
// `operation` of an end without a oneshot: throws usage_error.
[[noreturn]] void no_such_oneshot(const char* operation);

template <class T>
struct oneshot_block : oneshot_core {
  [[nodiscard]] T& value() noexcept { return *std::launder(reinterpret_cast<T*>(storage)); }
  static void drop(oneshot_block* block) noexcept {
    if (block->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete block;
  }
  alignas(T) std::byte storage[sizeof(T)];
};

}  // namespace ramie::channel_internal

namespace ramie::inline v0 {

template <class T>
struct oneshot_ends;
template <class T>
[[nodiscard]] oneshot_ends<T> make_oneshot();

// The end that sends the one value, or closes by going. Movable, not copyable; empty by default, after a move and after
// send(). Any fiber or plain thread, one at a time; the other end may be used at the same time.
template <class T>
class oneshot_sender {
 public:
  oneshot_sender() noexcept = default;  // empty
  oneshot_sender(oneshot_sender&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  oneshot_sender& operator=(oneshot_sender&& other) noexcept {
    oneshot_sender taken(std::move(other));
    std::swap(block_, taken.block_);
    return *this;
  }
  // Without a send, the receiver gets nothing: closed.
  ~oneshot_sender() {
    if (block_ == nullptr) return;
    ::ramie::channel_internal::oneshot_settle(*block_, ::ramie::channel_internal::oneshot_core::closed);
    block_->drop(block_);
  }

  // Gives the value to the receiver and lets go. False: the receiver has gone, and the value is still the caller's (it
  // may have been moved there and back; if T's move throws on the way back, it is lost and this throws). Never waits;
  // not a cancellation point. Throws usage_error if there was a send before, and what moving T throws.
  bool send(T&& value) {
    using core = ::ramie::channel_internal::oneshot_core;
    if (block_ == nullptr) ::ramie::channel_internal::no_such_oneshot("oneshot_sender::send");
    if (receiver_gone()) {
      *this = oneshot_sender();
      return false;
    }
    ::new (static_cast<void*>(block_->storage)) T(std::move(value));
    const auto block = std::unique_ptr<block_type, let_go>(std::exchange(block_, nullptr));
    const bool received = ::ramie::channel_internal::oneshot_settle(*block, core::value_sent) != core::closed;
    if (!received) give_back(*block, value);
    return received;
  }
  bool send(const T& value) {
    T copy(value);
    return send(std::move(copy));
  }

  // Whether the receiver has gone: nothing can be sent any more. A snapshot. Not a cancellation point. Throws
  // usage_error on an empty handle, so after a send: ask valid() first.
  [[nodiscard]] bool is_closed() const {
    if (block_ == nullptr) ::ramie::channel_internal::no_such_oneshot("oneshot_sender::is_closed");
    return receiver_gone();
  }
  // Whether there is a oneshot behind the handle: nothing was sent by it, and it was not moved from. Not a cancellation
  // point.
  [[nodiscard]] bool valid() const noexcept { return block_ != nullptr; }

 private:
  friend oneshot_ends<T> make_oneshot<T>();
  explicit oneshot_sender(::ramie::channel_internal::oneshot_block<T>* block) noexcept : block_(block) {}

  using block_type = ::ramie::channel_internal::oneshot_block<T>;
  struct let_go {
    void operator()(block_type* block) const noexcept { block->drop(block); }
  };
  // There is a block.
  [[nodiscard]] bool receiver_gone() const noexcept {
    return block_->now.load(std::memory_order_acquire) == ::ramie::channel_internal::oneshot_core::closed;
  }
  // The receiver went after send() had found it there.
  static void give_back(::ramie::channel_internal::oneshot_block<T>& block, T& value) {
    struct destroyed {
      T& what;
      ~destroyed() { what.~T(); }
    } after{block.value()};
    if constexpr (std::is_nothrow_move_constructible_v<T>) {
      std::destroy_at(std::addressof(value));
      std::construct_at(std::addressof(value), std::move(block.value()));
    } else {
      value = std::move(block.value());
    }
  }
  ::ramie::channel_internal::oneshot_block<T>* block_ = nullptr;
};

// The end that gets the value, once. Movable, not copyable; empty by default and after a move. Any fiber or plain
// thread, one at a time; the other end may be used at the same time. A case of select: on_ready. All but valid() throw
// usage_error on an empty handle.
template <class T>
class oneshot_receiver {
 public:
  oneshot_receiver() noexcept = default;  // empty
  oneshot_receiver(oneshot_receiver&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  oneshot_receiver& operator=(oneshot_receiver&& other) noexcept {
    oneshot_receiver taken(std::move(other));
    std::swap(block_, taken.block_);
    return *this;
  }
  // A send finds it gone, and keeps its value; one that was sent and not taken is destroyed.
  ~oneshot_receiver() {
    if (block_ == nullptr) return;
    using core = ::ramie::channel_internal::oneshot_core;
    if (::ramie::channel_internal::oneshot_settle(*block_, core::closed) == core::value_sent) block_->value().~T();
    block_->drop(block_);
  }

  // Waits for the value. Nothing: the sender has gone without one, or the value was taken before. A cancellation
  // point. Throws usage_error on an empty handle, std::bad_alloc on a thread's first wait.
  [[nodiscard]] std::optional<T> recv() {
    (void)::ramie::channel_internal::oneshot_wait(need("oneshot_receiver::recv"),
                                                  ::ramie::channel_internal::channel_time::max());
    std::optional<T> value;
    (void)take(value);
    return value;
  }
  // Like recv, but waits no longer than `until`: a value, or closed, or timed_out. A point in time or a duration is a
  // deadline. A cancellation point. Throws std::bad_alloc or std::system_error if the deadline can't be kept.
  [[nodiscard]] received<T> recv_until(deadline until) {
    const bool in_time = ::ramie::channel_internal::oneshot_wait(need("oneshot_receiver::recv_until"), until.when());
    return result(in_time ? channel_status::closed : channel_status::timed_out);
  }
  template <class Rep, class Period>
  [[nodiscard]] received<T> recv_for(std::chrono::duration<Rep, Period> limit) {
    return recv_until(limit);
  }
  // Like recv, but without waiting: a value, or would_block, or closed. Not a cancellation point.
  [[nodiscard]] received<T> try_recv() {
    const bool open = need("oneshot_receiver::try_recv").now.load(std::memory_order_acquire) ==
                      ::ramie::channel_internal::oneshot_core::empty;
    return result(open ? channel_status::would_block : channel_status::closed);
  }
  // Whether there is a oneshot behind the handle. Not a cancellation point.
  [[nodiscard]] bool valid() const noexcept { return block_ != nullptr; }

 private:
  friend oneshot_ends<T> make_oneshot<T>();
  friend struct ::ramie::runtime_internal::ready_access;
  explicit oneshot_receiver(::ramie::channel_internal::oneshot_block<T>* block) noexcept : block_(block) {}
  [[nodiscard]] ::ramie::runtime_internal::ready_source as_ready_source() const noexcept {
    return block_ != nullptr ? ::ramie::channel_internal::oneshot_ready_source(*block_)
                             : ::ramie::runtime_internal::ready_source{};
  }
  [[nodiscard]] ::ramie::channel_internal::oneshot_core& need(const char* operation) const {
    if (block_ == nullptr) ::ramie::channel_internal::no_such_oneshot(operation);
    return *block_;
  }
  [[nodiscard]] bool take(std::optional<T>& value) {
    using core = ::ramie::channel_internal::oneshot_core;
    if (block_->now.load(std::memory_order_acquire) != core::value_sent) return false;
    value.emplace(std::move(block_->value()));  // if that throws, it is still there
    block_->value().~T();
    block_->now.store(core::closed, std::memory_order_relaxed);  // the sender has let go of the state
    return true;
  }
  [[nodiscard]] received<T> result(channel_status if_none) {
    return received<T>([this, if_none](std::optional<T>& value) { return take(value) ? channel_status::ok : if_none; });
  }
  ::ramie::channel_internal::oneshot_block<T>* block_ = nullptr;
};

// What make_oneshot returns: the two ends, to move to whom they are for.
template <class T>
struct oneshot_ends {
  oneshot_sender<T> tx;
  oneshot_receiver<T> rx;
};
template <class T>
requires(!::ramie::channel_internal::is_value<T>) class oneshot_sender<T>
    : ::ramie::channel_internal::must_be_value<T> {
};
template <class T>
requires(!::ramie::channel_internal::is_value<T>) class oneshot_receiver<T>
    : ::ramie::channel_internal::must_be_value<T> {
};
template <class T>
requires(!::ramie::channel_internal::is_value<T>) struct oneshot_ends<T> : ::ramie::channel_internal::must_be_value<T> {
};

// auto [tx, rx] = make_oneshot<T>(). One allocation. Any fiber or thread. Not a cancellation point. Throws
// std::bad_alloc.
template <class T>
[[nodiscard]] oneshot_ends<T> make_oneshot() {
  if constexpr (!::ramie::channel_internal::is_value<T>) {
    return {};  // oneshot_ends<T> has said why not
  } else {
    static_assert(std::is_move_constructible_v<T>,
                  "ramie: a oneshot moves its value, and this type can be neither moved nor copied. Send a "
                  "std::unique_ptr to it.");
    static_assert(std::is_nothrow_destructible_v<T>, "ramie: the destructor of a value must not throw.");
    static_assert(std::is_nothrow_move_constructible_v<T> || std::is_move_assignable_v<T>,
                  "ramie: a value that comes too late must be able to go back. Declare its move constructor noexcept, or "
                  "give it a move assignment.");
    auto* const block = new ::ramie::channel_internal::oneshot_block<T>;
    return {oneshot_sender<T>(block), oneshot_receiver<T>(block)};
  }
}

}  // namespace ramie::inline v0
