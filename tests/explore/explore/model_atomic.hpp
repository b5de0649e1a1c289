// SPDX-License-Identifier: BSL-1.0
// The atomic of the model build: every operation goes through the explorer (memory.hpp).
#pragma once

#include <cstring>
#include <source_location>

#include <explore/sites.hpp>
#if defined(RAMIE_SIMULATED)
#include <explore/traces_costs.hpp>
#elif defined(RAMIE_MODEL_OF_ALL)
#include <explore/traces_none.hpp>
#else
#include <explore/traces_full.hpp>
#endif

namespace explore {

template <class T>
class model_atomic {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  using order = std::memory_order;
  using site = std::source_location;  // of the operation: the explorer can weaken one (sites.hpp)
  static constexpr order strongest = std::memory_order_seq_cst;

 public:
  constexpr model_atomic() noexcept = default;
  constexpr model_atomic(T v) noexcept : value_(v) {}
  model_atomic(const model_atomic&) = delete;
  model_atomic& operator=(const model_atomic&) = delete;

  T load(order o = strongest, site at = site::current()) const noexcept {
    look(access_kind::load);
    return from_bits(traces_.load(to_bits(value_), order_at(at, access_kind::load, o)));
  }
  void store(T v, order o = strongest, site at = site::current()) noexcept {
    look(access_kind::store);
    traces_.store(to_bits(value_), to_bits(v), order_at(at, access_kind::store, o));
    set(v);
  }
  T exchange(T v, order o = strongest, site at = site::current()) noexcept {
    return change([v](T) { return v; }, order_at(at, access_kind::both, o));
  }
  T fetch_add(T d, order o = strongest, site at = site::current()) noexcept {
    return change([d](T old) { return static_cast<T>(old + d); }, order_at(at, access_kind::both, o));
  }
  T fetch_sub(T d, order o = strongest, site at = site::current()) noexcept {
    return change([d](T old) { return static_cast<T>(old - d); }, order_at(at, access_kind::both, o));
  }
  T fetch_or(T d, order o = strongest, site at = site::current()) noexcept {
    return change([d](T old) { return static_cast<T>(old | d); }, order_at(at, access_kind::both, o));
  }
  T fetch_and(T d, order o = strongest, site at = site::current()) noexcept {
    return change([d](T old) { return static_cast<T>(old & d); }, order_at(at, access_kind::both, o));
  }
  bool compare_exchange_strong(T& expected, T desired, order success, order failure,
                               site at = site::current()) noexcept {
    look(access_kind::both);
    if (value_ != expected) {
      traces_.look_at_newest(to_bits(value_), order_at(at, access_kind::load, failure));
      expected = value_;
      return false;
    }
    traces_.replace(to_bits(value_), to_bits(desired), order_at(at, access_kind::both, success));
    set(desired);
    return true;
  }
  bool compare_exchange_strong(T& expected, T desired, order o = strongest, site at = site::current()) noexcept {
    return compare_exchange_strong(expected, desired, o, o == std::memory_order_acq_rel ? std::memory_order_acquire : o,
                                   at);
  }
  bool compare_exchange_weak(T& expected, T desired, order success, order failure, site at = site::current()) noexcept {
    return compare_exchange_strong(expected, desired, success, failure, at);
  }
  bool compare_exchange_weak(T& expected, T desired, order o = strongest, site at = site::current()) noexcept {
    return compare_exchange_strong(expected, desired, o, at);
  }

  // Without a scheduling point, for fields with one owner at a time: what must be ordered by something else shows when
  // it is not.
  T quiet_load() const noexcept {
    traces_.require_alive();
    return from_bits(traces_.load(to_bits(value_), std::memory_order_relaxed));
  }
  void quiet_store(T v) noexcept {
    traces_.require_alive();
    traces_.store(to_bits(value_), to_bits(v), std::memory_order_relaxed);
    value_ = v;
  }

 private:
  static std::uint64_t to_bits(T v) noexcept {
    std::uint64_t bits = 0;
    std::memcpy(&bits, &v, sizeof v);
    return bits;
  }
  static T from_bits(std::uint64_t bits) noexcept {
    T v{};
    std::memcpy(static_cast<void*>(&v), &bits, sizeof v);
    return v;
  }
  template <class Change>
  T change(Change f, order o) noexcept {
    look(access_kind::both);
    const T old = value_;
    traces_.replace(to_bits(old), to_bits(f(old)), o);
    set(f(old));
    return old;
  }
  void look(access_kind kind) const noexcept {
    traces_.arrive(&value_, kind);
    traces_.require_alive();
  }
  void set(T v) noexcept {
    if (to_bits(value_) != to_bits(v)) changed();
    value_ = v;
  }

  T value_{};  // the newest
  [[no_unique_address]] traces traces_;
};

}  // namespace explore
