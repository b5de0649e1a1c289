// SPDX-License-Identifier: BSL-1.0
// Stack memory for fibers: big mappings, carved into slots, one guard page below each stack.
//
//   slot:  [ guard page | usable … | stack_block ]     addresses grow to the right
//
// Size classes are powers of two from 16 KiB. The size of a class is what a fiber is promised; for
// the default and larger classes the slot reserves more address space, because a stack that runs
// children in place must still have the whole promise left for each of them. Pages are touched on
// demand, so the reservation costs page tables, not memory. Slots are an odd number of pages apart: the processor's
// second-level TLB is indexed by the low bits of the page number, and thousands of stacks a power of two apart would
// share a handful of its entries (1000 fibers that yield in turn took 40 % longer, a sieve of 2000 30 %).
//
// A stack in the pool is *hot* (its pages are resident and its stack_block is intact) or *cold*
// (never used, or trimmed with MADV_DONTNEED: only its slot number is remembered, outside the slot).
// Taking from the pool prefers hot stacks, the last one given back first. Giving back never trims: the
// system calls would be paid by fibers that end. Workers with nothing else to do call trim(), which
// leaves `hot_limit` stacks per class hot.
//
// System calls are shared where the kernel lets a process advise itself about many ranges at once
// (process_madvise of PIDFD_SELF, 6.14): the guards of the slots that are carved next, the first pages of stacks that
// are taken together, the trimming. So a slot may be guarded before it is wanted. Pages are touched ahead only for a
// batch that is being taken, and such a batch is at most an eighth of the stacks that are out already. Where it is
// refused, each range gets a call of its own, and pages are touched one by one.
//
// Guards are MADV_GUARD_INSTALL where the kernel has it (6.13), which a pool finds out by a guard that it looks at: no
// VMA per guard, so a million guarded stacks fit under vm.max_map_count. Otherwise, or should the kernel refuse one,
// mprotect, whose failure at the map limit is an exhausted pool, never an unguarded stack. Guards are installed under
// the pool's mutex; stacks are touched for the first time outside, so that workers take their page faults side by side.
//
// A pool may have a supply: a user's allocator, whose stacks it hands out for the classes that the supply serves. They
// are laid out in the same way, their lowest page counts as the guard (whether it is one is up to the user), and
// instead of being trimmed they go back to the allocator. The supply is never called with the pool's mutex held.
//
// All functions may be called from any thread.
#pragma once

#include <sys/uio.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/context.hpp>
#include <ramie/platform/thread.hpp>

namespace ramie::platform {

inline constexpr std::size_t page_size = 4096;
inline constexpr std::size_t min_stack_size = 16 * 1024;
inline constexpr std::size_t max_stack_size = std::size_t{1} << 30;
inline constexpr unsigned stack_class_count = 17;  // 16 KiB … 1 GiB

// The class whose promise is at least `bytes`. `bytes` must lie in [min_stack_size, max_stack_size].
[[nodiscard]] std::uint8_t stack_class_for(std::size_t bytes) noexcept;
[[nodiscard]] constexpr std::size_t promised_bytes(std::uint8_t size_class) noexcept {
  return min_stack_size << size_class;
}
[[nodiscard]] constexpr std::size_t slot_bytes(std::uint8_t size_class) noexcept {
  const std::size_t promise = promised_bytes(size_class);
  const std::size_t in_place_reserve = promise >= 64 * 1024 ? 64 * 1024 : 0;
  return promise + in_place_reserve + page_size;
}

// What a stack from a supply must have: the promise, the page that counts as its guard, and a page for the pool's data.
[[nodiscard]] constexpr std::size_t least_supplied_bytes(std::uint8_t size_class) noexcept {
  return promised_bytes(size_class) + 2 * page_size;
}
// What it should have, so that children fit above a joiner as they do on a stack of the pool's own.
[[nodiscard]] constexpr std::size_t usual_supplied_bytes(std::uint8_t size_class) noexcept {
  return slot_bytes(size_class) + page_size;
}

inline constexpr std::size_t usual_hot_limit = 1024;

// Room for the frames between a join and the function of a child that it calls.
inline constexpr std::size_t call_overhead = 1024;

class stack_supply {
 public:
  struct memory {
    char* low = nullptr;  // null: there is none
    char* top = nullptr;  // one past the highest byte
  };
  [[nodiscard]] virtual bool serves(std::uint8_t size_class) const noexcept = 0;
  [[nodiscard]] virtual memory allocate(std::uint8_t size_class) noexcept = 0;
  virtual void deallocate(const memory& which) noexcept = 0;

 protected:
  ~stack_supply() = default;
};

enum class guard_kind : std::uint8_t { automatic, madvise, mprotect };

class stack_pool {
 public:
  using entry_function = void (*)(arrival);

  // Every stack taken from the pool for the first time starts in `entry`.
  explicit stack_pool(entry_function entry, guard_kind guards = guard_kind::automatic,
                      std::size_t hot_limit = usual_hot_limit, stack_supply* supply = nullptr) noexcept;
  ~stack_pool();
  stack_pool(const stack_pool&) = delete;
  stack_pool& operator=(const stack_pool&) = delete;

  // A stack ready to be switched to, or null when memory, address space or mappings are exhausted.
  [[nodiscard]] stack_block* take(std::uint8_t size_class) noexcept;

  // The first of up to `count` such stacks, linked by `next`; sets `count` to how many. More than one only if they are
  // hot, or if many are out already.
  [[nodiscard]] stack_block* take_batch(std::uint8_t size_class, std::uint32_t& count) noexcept;
  static constexpr std::uint32_t largest_batch = 64;

  // Gives back a suspended stack that holds no fiber.
  void give_back(stack_block* stack) noexcept;

  // The same for `count` stacks of one class, linked by `next` from `first` to `last`.
  void give_batch(stack_block& first, stack_block& last, std::uint32_t count) noexcept;

  // Trims up to `most` stacks. True: there may be more to trim.
  bool trim(std::size_t most) noexcept;

  struct census {
    std::size_t slots = 0;  // carved from mappings so far, and supplied ones that there are
    std::size_t taken = 0;  // out of the pool right now
    std::size_t trimmed = 0;  // or given back to the supply
    bool guarded_by_madvise = false;
  };
  [[nodiscard]] census count() const noexcept;

  // The largest class whose promise is left for a function that is called on `stack` where the stack pointer is `at`,
  // or -1. One comparison, for which the fields are laid out, finds both that there is too little and that `at` is not
  // on this stack at all: the user has switched to another stack, whose end is not known.
  [[nodiscard]] static int largest_call(const stack_block& stack, const void* at) noexcept {
    const auto left = static_cast<std::size_t>(static_cast<const char*>(at) - stack.call_floor);
    if (left - min_stack_size >= stack.call_span) return -1;
    if (left < min_stack_size) __builtin_unreachable();  // excluded by the comparison, which the compiler can't see
    return static_cast<int>(std::bit_width(left / min_stack_size)) - 1;
  }
  // Whether largest_call is at least the class of that promise.
  [[nodiscard]] static bool may_call(const stack_block& stack, const void* at, std::size_t promise) noexcept {
    const auto left = static_cast<std::size_t>(static_cast<const char*>(at) - stack.call_floor);
    return left >= promise && left - min_stack_size < stack.call_span;
  }

 private:
  struct region;
  struct place {
    region* in;
    std::uint32_t slot;
  };
  struct class_stacks {  // of one size class
    stack_block* hot = nullptr;
    std::size_t hot_count = 0;
    std::vector<std::unique_ptr<region>> regions;
    std::vector<place> cold;  // trimmed slots
  };

  // Up to `most` cold slots, each guarded, or none if not even one can be had. With the mutex held.
  [[nodiscard]] std::uint32_t take_cold(class_stacks& from, std::uint8_t size_class, place* into,
                                        std::uint32_t most) noexcept;
  [[nodiscard]] region* region_with_free_slots(class_stacks& from, std::uint8_t size_class) noexcept;
  [[nodiscard]] bool install_guards(region& in) noexcept;
  void trim_slots(const place* slots, std::uint32_t count) noexcept;
  [[nodiscard]] std::uint32_t advise_at_once(const iovec* them, std::uint32_t count, int advice) noexcept;
  [[nodiscard]] stack_block* prepare(const place& at, stack_block* next) noexcept;
  [[nodiscard]] stack_block* lay_out(stack_block* at, char* low, std::uint8_t size_class) noexcept;
  [[nodiscard]] bool supplied(std::uint8_t size_class) const noexcept {
    return supply_ != nullptr && supply_->serves(size_class);
  }
  [[nodiscard]] stack_block* take_supplied(std::uint8_t size_class) noexcept;
  [[nodiscard]] stack_block* pop_hot(class_stacks& from) noexcept;
  void trim_carved(class_stacks& from, std::size_t& most) noexcept;
  void trim_supplied(class_stacks& from, std::size_t& most, std::unique_lock<mutex>& hold) noexcept;
  void destroy(stack_block* stack) noexcept;

  const entry_function entry_;
  const std::size_t hot_limit_;
  stack_supply* const supply_;
  const float_environment floats_{};  // of fresh stacks
  mutable mutex mutex_;
  bool guard_by_madvise_;
  class_stacks by_class_[stack_class_count];
  atomic<bool> trim_wanted_{false};
  atomic<bool> at_once_{true};  // until the kernel says that there is no such call
  std::size_t slots_ = 0;
  std::size_t taken_ = 0;
  std::size_t trimmed_ = 0;
};

// Async-signal-safe: is `address` in the guard page of some pool's stack, and what was that stack
// promised? Zero if not.
[[nodiscard]] std::size_t promise_of_guard_at(const void* address) noexcept;

}  // namespace ramie::platform
