// SPDX-License-Identifier: BSL-1.0
// The memory model of the explorer, after the views of the C++20 model: coherence, release and acquire, fences,
// seq_cst. Stores to one location have one order, in which they happen; but a thread that has not learnt of the
// newest may read an older one.
//
//   A view says, for every location, which store is the oldest that may still be read.
//   A thread has three: `now`, what it must see; `acquirable`, what an acquire fence would add; `released`, what it
//   had seen at its last release fence.
//   A store carries the view that whoever acquires it takes over. An RMW reads the newest store and passes its view on.
//   A seq_cst fence exchanges views with all others'; a seq_cst store is the oldest that seq_cst loads may read.
//   A heavy fence (membarrier) is such a fence in every thread.
//
// Left out: stores of one location that become visible out of order to nobody in particular, loads that return what
// is stored later (load buffering), and spurious failures of weak exchanges.
#pragma once

#include <atomic>
#include <cstdint>

namespace explore {

// What an atomic of the model keeps; the rest is in the explorer, for the length of an execution.
struct location {
  std::uint32_t id = 0;
  std::uint32_t execution = 0;
};

[[nodiscard]] std::uint64_t load(location& at, std::uint64_t newest, std::memory_order order) noexcept;
void store(location& at, std::uint64_t newest, std::uint64_t value, std::memory_order order) noexcept;
// An RMW that has read `newest` and leaves `value`.
void replace(location& at, std::uint64_t newest, std::uint64_t value, std::memory_order order) noexcept;
// A failed compare-exchange: a load of the newest.
void look_at_newest(location& at, std::uint64_t newest, std::memory_order order) noexcept;
void fence(std::memory_order order) noexcept;  // relaxed: none
void light_fence(std::memory_order order) noexcept;
[[nodiscard]] bool has_membarrier() noexcept;  // whether light fences are none
void heavy_fence(std::memory_order order) noexcept;

// A scheduling point.
void step() noexcept;
// A value has changed: whoever waits for news may look again.
void changed() noexcept;
// Ends the execution as a failure.
[[noreturn]] void touched_after_its_end() noexcept;

// A variable that is not atomic: two accesses of which one writes must be ordered, or the execution fails. Copies the
// value, not the history.
class race_detector {
 public:
  void reads() const noexcept;
  void writes() noexcept;

 private:
  void forget_earlier_executions() const noexcept;

  static constexpr std::size_t max_threads = 8;
  mutable std::uint32_t execution_ = 0;
  mutable std::uint32_t writer_ = 0;
  mutable std::int16_t written_ = 0;
  mutable std::int16_t read_[max_threads] = {};
};

template <class T>
class plain {
 public:
  plain() = default;
  plain(T v) : value_(v) {}
  plain(const plain& other) : value_(other.get()) {}
  plain& operator=(const plain& other) {
    set(other.get());
    return *this;
  }
  plain& operator=(T v) {
    set(v);
    return *this;
  }
  operator T() const { return get(); }
  [[nodiscard]] T get() const {
    races_.reads();
    return value_;
  }
  void set(T v) {
    races_.writes();
    value_ = v;
  }

 private:
  T value_{};
  race_detector races_;
};

}  // namespace explore
