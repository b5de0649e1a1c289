// SPDX-License-Identifier: BSL-1.0
// What broadcast and watch stand on: a log that keeps its last few entries, which any number of readers read, each at
// its own pace. Not part of the API.
//
// Entries are numbered from 0; `written` is how many there were. The log keeps the last `capacity`. A reader has the
// number of the next entry it wants. Writing never waits: a reader that is too slow finds the oldest entries gone. An
// entry of a broadcast that no reader can ever read, because there was none when it was written or the last one has
// gone, is not kept. The latest entry of a watch always is: every reader that subscribes later sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <ramie/detail/channel_core.hpp>
#include <ramie/detail/ready_source.hpp>
#include <ramie/received.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

class broadcast_log;
using log_entry = std::shared_ptr<const void>;
enum class log_kind : std::uint8_t { broadcast, watch };

struct log_reading {
  channel_status status = channel_status::would_block;
  log_entry entry;
  std::uint64_t next = 0;  // the reader's new position
  std::uint64_t lost = 0;  // entries between its old position and this one
};
struct log_latest {
  log_entry entry;
  std::uint64_t written;
};

// `first`, if not null, is entry 0: that of a watch. Throws std::bad_alloc, usage_error for capacity 0.
[[nodiscard]] std::shared_ptr<broadcast_log> make_broadcast_log(std::size_t capacity, log_entry first);
// False: it is closed, and nothing was written. Lets others go first when the budget is used up; not a cancellation
// point.
bool write_entry(broadcast_log& log, log_entry entry) noexcept;
bool close_log(broadcast_log& log) noexcept;  // false: it was closed already, and nothing changes
[[nodiscard]] bool log_closed(const broadcast_log& log) noexcept;
[[nodiscard]] std::uint64_t entries_written(const broadcast_log& log) noexcept;
[[nodiscard]] log_latest latest_entry(const broadcast_log& log);

// The entry at `position`, or the oldest after it. Without waiting: ok, would_block, closed.
[[nodiscard]] log_reading try_read(broadcast_log& log, std::uint64_t position);
// Like try_read, but after await_entry has returned ok.
[[nodiscard]] log_reading read_awaited(broadcast_log& log, std::uint64_t position);
// Waits until there is one, or the log is closed: ok, closed or timed_out. A cancellation point.
struct log_arrival {
  channel_status status;
  std::uint64_t written;  // then
};
[[nodiscard]] log_arrival await_entry(broadcast_log& log, std::uint64_t position, channel_time deadline, log_kind kind);
// For select: true when a read would not wait.
[[nodiscard]] ready_source log_ready_source(broadcast_log& log, std::uint64_t position) noexcept;

// Writers: when the last one is dropped, the log is closed.
void add_writer(broadcast_log& log) noexcept;
void drop_writer(broadcast_log& log) noexcept;
// Readers: a new one, which begins at the position returned; a copy of one that exists; one that goes. When the last
// one has gone, the entries of a broadcast are destroyed.
[[nodiscard]] std::uint64_t new_reader(broadcast_log& log) noexcept;
void copy_reader(broadcast_log& log) noexcept;
void drop_reader(broadcast_log& log) noexcept;
[[nodiscard]] std::size_t readers(const broadcast_log& log) noexcept;

// `type::operation` of a handle without a log behind it: throws usage_error.
[[noreturn]] void no_such_log(const char* type, const char* operation);

// A pointer to a log that counts as a writer or a reader of it.
template <void (*add)(broadcast_log&) noexcept, void (*drop)(broadcast_log&) noexcept>
class log_ref {
 public:
  log_ref() noexcept = default;
  // It has been counted already.
  explicit log_ref(std::shared_ptr<broadcast_log> counted) noexcept : log_(std::move(counted)) {}
  log_ref(const log_ref& other) noexcept : log_(other.log_) {
    if (log_ != nullptr) add(*log_);
  }
  log_ref(log_ref&& other) noexcept = default;
  log_ref& operator=(log_ref other) noexcept {
    log_.swap(other.log_);
    return *this;
  }
  ~log_ref() {
    if (log_ != nullptr) drop(*log_);
  }
  [[nodiscard]] const std::shared_ptr<broadcast_log>& get() const noexcept { return log_; }
  [[nodiscard]] broadcast_log& need(const char* type, const char* operation) const {
    if (log_ == nullptr) [[unlikely]]
      no_such_log(type, operation);
    return *log_;
  }

 private:
  std::shared_ptr<broadcast_log> log_;
};

// A reader with its position.
class log_reader : public log_ref<copy_reader, drop_reader> {
 public:
  log_reader() noexcept = default;
  explicit log_reader(const std::shared_ptr<broadcast_log>& log) noexcept : log_ref(log), position(new_reader(*log)) {}
  [[nodiscard]] ready_source as_ready_source() const noexcept {
    return get() != nullptr ? log_ready_source(*get(), position) : ready_source{};
  }

  std::uint64_t position = 0;
};

// The side that writes, of a broadcast and of a watch. Copies write to one log; when the last one goes, it closes. All
// but the constructor and valid() throw usage_error on an empty handle; none is a cancellation point. Fibers and plain
// threads may call all of these at the same time.
template <log_kind kind, class T, class Receiver>
class log_writer : must_be_value<T> {
 public:
  using value_type = T;
  log_writer() noexcept = default;

  // To every receiver. False once closed. Never waits, but may let other fibers go first. Throws std::bad_alloc and
  // what copying or moving T throws.
  bool send(T value) const { return write_entry(need("send"), std::make_shared<const T>(std::move(value))); }
  // A receiver of what is sent from now on.
  [[nodiscard]] Receiver subscribe() const {
    (void)need("subscribe");
    return Receiver(log_reader(log_.get()));
  }
  // No more can be sent; what is there can be received, and those that wait return. Returns whether this call closed
  // it, like channel::close; idempotent.
  bool close() const { return close_log(need("close")); }
  // Whether nothing can be sent any more.
  [[nodiscard]] bool is_closed() const { return log_closed(need("is_closed")); }
  // How many there are. A snapshot.
  [[nodiscard]] std::size_t receivers() const { return readers(need("receivers")); }
  // Whether there is a broadcast or watch behind the handle.
  [[nodiscard]] bool valid() const noexcept { return log_.get() != nullptr; }

 protected:
  explicit log_writer(std::shared_ptr<broadcast_log> log) noexcept : log_((add_writer(*log), std::move(log))) {}
  [[nodiscard]] broadcast_log& need(const char* operation) const {
    return log_.need(kind == log_kind::watch ? "watch" : "broadcast", operation);
  }

 private:
  log_ref<add_writer, drop_writer> log_;
};

}  // namespace ramie::channel_internal
