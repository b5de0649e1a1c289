// SPDX-License-Identifier: BSL-1.0
// A board of notices: see bulletin.hpp.
//
// Under the lock: the ring, `posted`, `closed`, the waiters. A reader waits only when its position is `posted`, so
// every post ends every wait. Notices are shared pointers: a reader takes one under the lock and copies the value
// without it; the one that is overwritten dies without it, too.
#include <ramie/detail/bulletin.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <ramie/error.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

class bulletin_core {
 public:
  bulletin_core(std::size_t capacity, notice first) : is_watch_(first != nullptr), ring_(capacity) {
    if (first == nullptr) return;
    ring_[0] = std::move(first);
    posted_.set(1);
  }

  bool post(notice what) noexcept {
    waiter* ready = nullptr;
    {
      std::lock_guard hold(lock_);
      if (closed_.get()) return false;
      if (is_watch_ || readers_.load(std::memory_order_relaxed) != 0) ring_[posted_.get() % ring_.size()].swap(what);
      posted_.add(1);
      waiters_.claim_if([](const waiter&) { return true; }, ready);
    }
    complete_all(ready);
    return true;
  }

  void close() noexcept {
    waiter* ready = nullptr;
    {
      std::lock_guard hold(lock_);
      closed_.set(true);
      waiters_.claim_if([](const waiter&) { return true; }, ready);
    }
    complete_all(ready);
  }

  // Readers come and go under the lock, so a post sees whether there is one. A copy has another beside it.
  [[nodiscard]] std::uint64_t new_reader() noexcept {
    std::lock_guard hold(lock_);
    if (readers_.fetch_add(1, std::memory_order_relaxed) == 0) first_kept_ = posted_.get();
    return posted_.get();
  }
  void copy_reader() noexcept { readers_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reader() noexcept {
    std::uint64_t next = 0, end = 0;
    {
      std::lock_guard hold(lock_);
      if (readers_.fetch_sub(1, std::memory_order_relaxed) != 1 || is_watch_) return;
      end = posted_.get();
      next = std::max(first_kept_, oldest());
    }
    while (next != end) {
      notice gone[16];  // they die without the lock
      std::lock_guard hold(lock_);
      for (auto at = std::begin(gone); at != std::end(gone) && next != end; ++next) {
        if (next >= oldest()) (at++)->swap(ring_[next % ring_.size()]);  // else a newer one is there
      }
    }
  }
  [[nodiscard]] std::size_t readers() const noexcept { return readers_.load(std::memory_order_relaxed); }

  [[nodiscard]] bulletin_reading read(std::uint64_t position) {
    std::lock_guard hold(lock_);
    const auto all = posted_.get();
    if (position >= all) return {closed_.get() ? channel_status::closed : channel_status::would_block, {}, position, 0};
    const auto at = std::max(position, oldest());
    return {channel_status::ok, ring_[at % ring_.size()], at + 1, at - position};
  }

  // Whether a read at that position would not wait.
  [[nodiscard]] bool ready(std::uint64_t position) const noexcept { return posted_.get() > position || closed_.get(); }

  bool list(waiter& node, std::uint64_t position) noexcept {
    std::lock_guard hold(lock_);
    if (ready(position)) return false;
    waiters_.add(node);
    return true;
  }
  void unlist(waiter& node) noexcept {
    std::lock_guard hold(lock_);
    waiters_.remove(node);
  }

  [[nodiscard]] latest_notice latest() const {
    std::lock_guard hold(lock_);
    const auto all = posted_.get();
    return {all != 0 ? ring_[(all - 1) % ring_.size()] : nullptr, all};
  }
  [[nodiscard]] std::uint64_t posted() const noexcept {
    std::lock_guard hold(lock_);
    return posted_.get();
  }
  [[nodiscard]] bool closed() const noexcept { return closed_.get(); }

  platform::atomic<std::size_t> posters{0};

 private:
  // The first that has not been overwritten. With the lock.
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    return posted_.get() > ring_.size() ? posted_.get() - ring_.size() : 0;
  }

  const bool is_watch_;
  platform::atomic<std::size_t> readers_{0};
  mutable platform::spin_lock lock_;
  platform::owned<bool> closed_{false};
  platform::owned<std::uint64_t> posted_{0};
  std::uint64_t first_kept_ = 0;  // posted since the first of the readers came; those before are not in the ring
  wait_list waiters_;
  std::vector<notice> ring_;
};

namespace {

const wait_reason waits_for_message{"broadcast recv"};
const wait_reason waits_for_change{"watch change"};

class next_notice final : public waitable {
 public:
  next_notice(bulletin_core& board, std::uint64_t position) noexcept : board_(board), position_(position) {}
  bool try_complete(waiter&) override { return board_.ready(position_); }
  bool publish(waiter& node) override { return board_.list(node, position_); }
  void unpublish(waiter& node) noexcept override { board_.unlist(node); }

 private:
  bulletin_core& board_;
  const std::uint64_t position_;
};

bulletin_core& board_of(const join_target& t) noexcept {
  return *static_cast<bulletin_core*>(t.what);
}

constexpr join_ops bulletin_joins{
    [](const join_target&) {}, [](const join_target&) noexcept {},
    [](const join_target& t) noexcept { return board_of(t).ready(t.number); },
    [](const join_target& t, keyed_waiter& node) { return board_of(t).list(node, t.number); },
    [](const join_target& t, keyed_waiter& node) noexcept { board_of(t).unlist(node); }};

}  // namespace

std::shared_ptr<bulletin_core> make_bulletin(std::size_t capacity, notice first) {
  if (capacity == 0) throw usage_error("ramie: a broadcast must be able to keep at least one message.");
  if (capacity > std::vector<notice>().max_size()) throw std::bad_alloc();
  return std::make_shared<bulletin_core>(capacity, std::move(first));
}

bool post(bulletin_core& b, notice what) noexcept {
  const bool open = b.post(std::move(what));
  whereabouts at = look_around();
  keep_to_budget(at);
  return open;
}

void close_bulletin(bulletin_core& b) noexcept {
  b.close();
}

bool bulletin_closed(const bulletin_core& b) noexcept {
  return b.closed();
}

std::uint64_t posted(const bulletin_core& b) noexcept {
  return b.posted();
}

latest_notice latest(const bulletin_core& b) {
  return b.latest();
}

bulletin_reading try_read(bulletin_core& b, std::uint64_t position) {
  spend_budget(look_around());
  return b.read(position);
}

bulletin_reading read_awaited(bulletin_core& b, std::uint64_t position) {
  return b.read(position);
}

channel_status await_notice(bulletin_core& b, std::uint64_t position, channel_time deadline, notice_kind kind) {
  whereabouts at = look_around();
  begin_operation(at);
  if (!b.ready(position)) {
    next_notice next(b, position);
    waiter node;
    const auto& why = kind == notice_kind::message ? waits_for_message : waits_for_change;
    const auto ended = fiber_wait_until(next, node, why, deadline);
    if (ended == wait_result::timed_out) return channel_status::timed_out;
  }
  return b.posted() > position ? channel_status::ok : channel_status::closed;
}

join_target bulletin_join_target(bulletin_core& b, std::uint64_t position) noexcept {
  return {&bulletin_joins, &b, nullptr, position};
}

void add_poster(bulletin_core& b) noexcept {
  b.posters.fetch_add(1, std::memory_order_relaxed);
}

void drop_poster(bulletin_core& b) noexcept {
  if (b.posters.fetch_sub(1, std::memory_order_acq_rel) == 1) b.close();
}

std::uint64_t new_reader(bulletin_core& b) noexcept {
  return b.new_reader();
}

void copy_reader(bulletin_core& b) noexcept {
  b.copy_reader();
}

void drop_reader(bulletin_core& b) noexcept {
  b.drop_reader();
}

std::size_t readers(const bulletin_core& b) noexcept {
  return b.readers();
}

void no_such_bulletin() {
  throw usage_error("ramie: a broadcast or watch handle with nothing behind it: default-made or moved from.");
}

}  // namespace ramie::detail
