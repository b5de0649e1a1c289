// SPDX-License-Identifier: BSL-1.0
// What broadcast and watch stand on: a board with room for the last few notices, which any number of readers read, each
// at its own pace. Not part of the API.
//
// Notices are numbered from 0; `posted` is how many there were. The board keeps the last `capacity`. A reader has the
// number of the next notice it wants. Posting never waits: a reader that is too slow finds the oldest ones gone. A
// notice that nobody can ever read, because there was no reader when it was posted or the last one has gone, is not
// kept; a watch's is, because it is shown to whoever comes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include <ramie/channel.hpp>
#include <ramie/detail/joinable.hpp>

namespace ramie::detail {

class bulletin_core;
using notice = std::shared_ptr<const void>;

struct bulletin_reading {
  channel_status status = channel_status::would_block;
  notice what;
  std::uint64_t next = 0;  // the reader's new position
  std::uint64_t lost = 0;  // notices between its old position and this one
};

// `first`, if not null, is notice 0. Throws std::bad_alloc, usage_error for capacity 0.
[[nodiscard]] std::shared_ptr<bulletin_core> make_bulletin(std::size_t capacity, notice first);
// False: it is closed, and nothing was posted. Lets others go first when the budget is used up; not a cancellation
// point.
bool post(bulletin_core& b, notice what) noexcept;
void close_bulletin(bulletin_core& b) noexcept;
[[nodiscard]] bool bulletin_closed(const bulletin_core& b) noexcept;
[[nodiscard]] std::uint64_t posted(const bulletin_core& b) noexcept;
// With the number of notices so far.
struct latest_notice {
  notice what;
  std::uint64_t posted;
};
[[nodiscard]] latest_notice latest(const bulletin_core& b);

// The notice at `position`, or the oldest after it. Without waiting: ok, would_block, closed.
[[nodiscard]] bulletin_reading try_read(bulletin_core& b, std::uint64_t position);
// The same after await_notice.
[[nodiscard]] bulletin_reading read_awaited(bulletin_core& b, std::uint64_t position);
// Waits until there is one, or the board is closed: ok, closed or timed_out. A cancellation point.
enum class notice_kind : std::uint8_t { message, change };  // what the wait is called
[[nodiscard]] channel_status await_notice(bulletin_core& b, std::uint64_t position, channel_time deadline,
                                          notice_kind kind);
// For select: true when a read would not wait.
[[nodiscard]] join_target bulletin_join_target(bulletin_core& b, std::uint64_t position) noexcept;

// Those who post. The last one closes.
void add_poster(bulletin_core& b) noexcept;
void drop_poster(bulletin_core& b) noexcept;
// Those who read. The first position of one that comes; a copy of one that is there; one that goes: when the last one
// has gone, nobody can read what was posted, and unless it is a watch's it is destroyed.
[[nodiscard]] std::uint64_t new_reader(bulletin_core& b) noexcept;
void copy_reader(bulletin_core& b) noexcept;
void drop_reader(bulletin_core& b) noexcept;
[[nodiscard]] std::size_t readers(const bulletin_core& b) noexcept;
[[noreturn]] void no_such_bulletin();

// A handle that counts as a poster.
class poster_ref {
 public:
  poster_ref() noexcept = default;
  explicit poster_ref(std::shared_ptr<bulletin_core> b) noexcept : board_(std::move(b)) { add_poster(*board_); }
  poster_ref(const poster_ref& other) noexcept : board_(other.board_) {
    if (board_ != nullptr) add_poster(*board_);
  }
  poster_ref(poster_ref&& other) noexcept = default;
  poster_ref& operator=(const poster_ref& other) noexcept {
    poster_ref taken(other);
    board_.swap(taken.board_);
    return *this;
  }
  poster_ref& operator=(poster_ref&& other) noexcept {
    poster_ref taken(std::move(other));
    board_.swap(taken.board_);
    return *this;
  }
  ~poster_ref() {
    if (board_ != nullptr) drop_poster(*board_);
  }
  [[nodiscard]] const std::shared_ptr<bulletin_core>& get() const {
    if (board_ == nullptr) no_such_bulletin();
    return board_;
  }
  [[nodiscard]] bool valid() const noexcept { return board_ != nullptr; }

 private:
  std::shared_ptr<bulletin_core> board_;
};

// A handle that counts as a reader, with its position.
class reader_ref {
 public:
  reader_ref() noexcept = default;
  explicit reader_ref(std::shared_ptr<bulletin_core> b) noexcept : position(new_reader(*b)), board_(std::move(b)) {}
  reader_ref(const reader_ref& other) noexcept : position(other.position), board_(other.board_) {
    if (board_ != nullptr) copy_reader(*board_);
  }
  reader_ref(reader_ref&& other) noexcept = default;
  reader_ref& operator=(const reader_ref& other) noexcept {
    reader_ref taken(other);
    std::swap(position, taken.position);
    board_.swap(taken.board_);
    return *this;
  }
  reader_ref& operator=(reader_ref&& other) noexcept {
    reader_ref taken(std::move(other));
    std::swap(position, taken.position);
    board_.swap(taken.board_);
    return *this;
  }
  ~reader_ref() {
    if (board_ != nullptr) drop_reader(*board_);
  }
  [[nodiscard]] bulletin_core& operator*() const {
    if (board_ == nullptr) no_such_bulletin();
    return *board_;
  }
  [[nodiscard]] bool valid() const noexcept { return board_ != nullptr; }
  [[nodiscard]] join_target join_source() const noexcept {
    return board_ != nullptr ? bulletin_join_target(*board_, position) : join_target{};
  }

  std::uint64_t position = 0;

 private:
  std::shared_ptr<bulletin_core> board_;
};

// What broadcast and watch have in common: the side that posts. Copies are one board; when the last one goes, it
// closes. All but the constructor and valid() throw usage_error on an empty handle; none is a cancellation point.
template <class T, class Receiver>
class posts : must_be_value<T> {
 public:
  using value_type = T;
  posts() noexcept = default;

  // To everybody who reads. False once closed. Never waits, but may let others go first. Throws std::bad_alloc and what
  // copying or moving T throws.
  bool send(T value) const { return post(*board_.get(), std::make_shared<const T>(std::move(value))); }
  // Reads what is sent from now on.
  [[nodiscard]] Receiver subscribe() const { return Receiver(reader_ref(board_.get())); }
  // No more can be sent; what is there can be read, and those who wait are told. Again is harmless.
  void close() const { close_bulletin(*board_.get()); }
  [[nodiscard]] bool is_closed() const { return bulletin_closed(*board_.get()); }
  // How many there are. A snapshot.
  [[nodiscard]] std::size_t receivers() const { return readers(*board_.get()); }
  [[nodiscard]] bool valid() const noexcept { return board_.valid(); }

 protected:
  explicit posts(std::shared_ptr<bulletin_core> board) noexcept : board_(std::move(board)) {}
  [[nodiscard]] bulletin_core& board() const { return *board_.get(); }

 private:
  poster_ref board_;
};

}  // namespace ramie::detail
