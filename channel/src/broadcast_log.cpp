// SPDX-License-Identifier: BSL-1.0
// A log of entries: see broadcast_log.hpp.
//
// Under the lock: the ring, the waiters, and every change of `written` and `closed`, which readers look at without it:
// a look that is too early finds nothing, and is repeated under the lock by a reader that lists itself. A reader waits
// only when its position is `written`, so every write ends every wait. Entries are shared pointers: a reader takes one
// under the lock and copies the value without it; the one that is overwritten is destroyed without it, too.
#include <ramie/detail/broadcast_log.hpp>

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include <ramie/error.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/ready.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

class broadcast_log {
 public:
  broadcast_log(std::size_t capacity, log_entry first) : is_watch_(first != nullptr), ring_(capacity) {
    if (first == nullptr) return;
    ring_[0] = std::move(first);
    written_.store(1, std::memory_order_relaxed);
  }

  bool write(log_entry entry) noexcept {
    wake_batch wakes;
    std::lock_guard hold(lock_);
    if (closed()) return false;
    const auto number = written();
    if (is_watch_ || readers_.load(std::memory_order_relaxed) != 0) ring_[number % ring_.size()].swap(entry);
    written_.store(number + 1, std::memory_order_release);
    waiters_.claim_all(wakes);
    return true;
  }

  // Whether this call closed it.
  bool close() noexcept {
    wake_batch wakes;
    std::lock_guard hold(lock_);
    if (closed()) return false;
    closed_.store(true, std::memory_order_release);
    waiters_.claim_all(wakes);
    return true;
  }

  // Readers are counted under the lock, so a write sees whether there is one. Not copies: their original is one.
  [[nodiscard]] std::uint64_t new_reader() noexcept {
    std::lock_guard hold(lock_);
    if (readers_.fetch_add(1, std::memory_order_relaxed) == 0) first_kept_ = written();
    return written();
  }
  void copy_reader() noexcept { readers_.fetch_add(1, std::memory_order_relaxed); }
  void drop_reader() noexcept {
    std::uint64_t next = 0, end = 0;
    {
      std::lock_guard hold(lock_);
      if (readers_.fetch_sub(1, std::memory_order_relaxed) != 1 || is_watch_) return;
      end = written();
      next = std::max(first_kept_, oldest());
    }
    while (next != end) {
      log_entry gone[16];  // destroyed without the lock
      std::lock_guard hold(lock_);
      for (auto at = std::begin(gone); at != std::end(gone) && next != end; ++next) {
        if (next >= oldest()) (at++)->swap(ring_[next % ring_.size()]);  // else a newer one is there
      }
    }
  }
  [[nodiscard]] std::size_t readers() const noexcept { return readers_.load(std::memory_order_relaxed); }

  [[nodiscard]] log_reading read(std::uint64_t position) {
    std::lock_guard hold(lock_);
    const auto all = written();
    if (position >= all) return {closed() ? channel_status::closed : channel_status::would_block, {}, position, 0};
    const auto at = std::max(position, oldest());
    return {channel_status::ok, ring_[at % ring_.size()], at + 1, at - position};
  }

  // Whether a read at that position would not wait.
  [[nodiscard]] bool ready(std::uint64_t position) const noexcept { return written() > position || closed(); }

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

  [[nodiscard]] log_latest latest() const {
    std::lock_guard hold(lock_);
    const auto all = written();
    return {all != 0 ? ring_[(all - 1) % ring_.size()] : nullptr, all};
  }
  // Acquire: who sees the entry, or the end, sees what its writer did before.
  [[nodiscard]] std::uint64_t written() const noexcept { return written_.load(std::memory_order_acquire); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }

  platform::atomic<std::size_t> writers{0};

 private:
  // The first that has not been overwritten. With the lock.
  [[nodiscard]] std::uint64_t oldest() const noexcept {
    return written() > ring_.size() ? written() - ring_.size() : 0;
  }

  const bool is_watch_;
  platform::atomic<std::size_t> readers_{0};
  mutable platform::spin_lock lock_;
  platform::atomic<bool> closed_{false};
  platform::atomic<std::uint64_t> written_{0};
  std::uint64_t first_kept_ = 0;  // written since the first of the readers came; those before are not in the ring
  wait_list waiters_;
  std::vector<log_entry> ring_;
};

namespace {

const wait_reason waits_for_message{"broadcast recv"};
const wait_reason waits_for_change{"watch change"};

class next_entry final : public waitable {
 public:
  next_entry(broadcast_log& log, std::uint64_t position) noexcept : log_(log), position_(position) {}
  static next_entry of(const ready_source& t) noexcept { return {*static_cast<broadcast_log*>(t.what), t.number}; }
  bool try_complete(waiter&) override { return log_.ready(position_); }
  bool publish(waiter& node) override { return log_.list(node, position_); }
  void unpublish(waiter& node) noexcept override { log_.unlist(node); }

 private:
  broadcast_log& log_;
  const std::uint64_t position_;
};

}  // namespace

std::shared_ptr<broadcast_log> make_broadcast_log(std::size_t capacity, log_entry first) {
  if (capacity == 0) {
    throw usage_error("ramie: broadcast::broadcast: the capacity is 0. Give it room for at least one message.");
  }
  if (capacity > std::vector<log_entry>().max_size()) throw std::bad_alloc();
  return std::make_shared<broadcast_log>(capacity, std::move(first));
}

bool write_entry(broadcast_log& log, log_entry entry) noexcept {
  const bool open = log.write(std::move(entry));
  call_context at = current_context();
  keep_to_budget(at);
  return open;
}

bool close_log(broadcast_log& log) noexcept {
  return log.close();
}

bool log_closed(const broadcast_log& log) noexcept {
  return log.closed();
}

std::uint64_t entries_written(const broadcast_log& log) noexcept {
  return log.written();
}

log_latest latest_entry(const broadcast_log& log) {
  return log.latest();
}

log_reading try_read(broadcast_log& log, std::uint64_t position) {
  spend_budget(current_context());
  return log.read(position);
}

log_reading read_awaited(broadcast_log& log, std::uint64_t position) {
  return log.read(position);
}

log_arrival await_entry(broadcast_log& log, std::uint64_t position, channel_time deadline, log_kind kind) {
  call_context at = current_context();
  begin_operation(at);
  if (!log.ready(position)) {
    next_entry next(log, position);
    waiter node;
    const auto& why = kind == log_kind::broadcast ? waits_for_message : waits_for_change;
    const auto ended = deadline == channel_time::max() ? fiber_wait_fresh_first(next, node, why)
                                                       : fiber_wait_until(next, node, why, deadline);
    if (ended == wait_result::timed_out) return {channel_status::timed_out, position};
  }
  const auto written = log.written();
  return {written > position ? channel_status::ok : channel_status::closed, written};
}

ready_source log_ready_source(broadcast_log& log, std::uint64_t position) noexcept {
  return {&ready_ops_of<next_entry>, &log, nullptr, position};
}

void add_writer(broadcast_log& log) noexcept {
  log.writers.fetch_add(1, std::memory_order_relaxed);
}

void drop_writer(broadcast_log& log) noexcept {
  if (log.writers.fetch_sub(1, std::memory_order_acq_rel) == 1) log.close();
}

std::uint64_t new_reader(broadcast_log& log) noexcept {
  return log.new_reader();
}

void copy_reader(broadcast_log& log) noexcept {
  log.copy_reader();
}

void drop_reader(broadcast_log& log) noexcept {
  log.drop_reader();
}

std::size_t readers(const broadcast_log& log) noexcept {
  return log.readers();
}

void no_such_log(const char* type, const char* operation) {
  throw usage_error("ramie: " + std::string(type) + "::" + operation +
                    ": this handle has no broadcast or watch: it was default-made or moved from. Make one by "
                    "broadcast<T>(capacity) or watch<T>(first), and receivers by its subscribe().");
}

}  // namespace ramie::channel_internal
