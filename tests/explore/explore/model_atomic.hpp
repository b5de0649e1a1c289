// SPDX-License-Identifier: BSL-1.0
// The atomic of the model build: every operation first lets the explorer decide who goes on.
// Sequentially consistent: orders are accepted and not weakened.
#pragma once

#include <atomic>

namespace explore {

// A scheduling point before a load, or before a change that may follow.
void step() noexcept;
// A value has changed: whoever waits for news may look again.
void changed() noexcept;
// Ends the execution as a failure.
[[noreturn]] void touched_after_its_end() noexcept;

template <class T>
class model_atomic {
 public:
  constexpr model_atomic() noexcept = default;
  constexpr model_atomic(T v) noexcept : value_(v) {}
  ~model_atomic() { alive_ = false; }
  model_atomic(const model_atomic&) = delete;
  model_atomic& operator=(const model_atomic&) = delete;

  T load(std::memory_order = std::memory_order_seq_cst) const noexcept {
    look();
    return value_;
  }
  void store(T v, std::memory_order = std::memory_order_seq_cst) noexcept {
    look();
    set(v);
  }
  T exchange(T v, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([v](T) { return v; });
  }
  T fetch_add(T d, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([d](T old) { return static_cast<T>(old + d); });
  }
  T fetch_sub(T d, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([d](T old) { return static_cast<T>(old - d); });
  }
  T fetch_or(T d, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([d](T old) { return static_cast<T>(old | d); });
  }
  T fetch_and(T d, std::memory_order = std::memory_order_seq_cst) noexcept {
    return change([d](T old) { return static_cast<T>(old & d); });
  }
  bool compare_exchange_strong(T& expected, T desired, std::memory_order = std::memory_order_seq_cst,
                               std::memory_order = std::memory_order_seq_cst) noexcept {
    look();
    if (value_ == expected) {
      set(desired);
      return true;
    }
    expected = value_;
    return false;
  }
  bool compare_exchange_weak(T& expected, T desired, std::memory_order a = std::memory_order_seq_cst,
                             std::memory_order b = std::memory_order_seq_cst) noexcept {
    return compare_exchange_strong(expected, desired, a, b);
  }

 private:
  template <class Change>
  T change(Change f) noexcept {
    look();
    const T old = value_;
    set(f(old));
    return old;
  }
  void look() const noexcept {
    step();
    if (!alive_) touched_after_its_end();
  }
  void set(T v) noexcept {
    if (value_ != v) changed();
    value_ = v;
  }

  T value_{};
  volatile bool alive_ = true;  // scenarios keep the memory of what they destroy
};

}  // namespace explore
