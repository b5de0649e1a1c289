// SPDX-License-Identifier: BSL-1.0
// What a nursery keeps for a task, in one block of its memory: the runtime's record of the fiber, marks, storage for
// the result, the closure. Not part of the API; templates of nursery.hpp make it.
//
//   fiber_record        the runtime's part: what the fiber runs, where it belongs, the marks of its end
//   task_block          what the nursery needs of every task, whatever its type
//   result_holder<R>    with storage for the result
//   typed_task_block    with the closure
//
// Three parties touch a block: the fiber, the handle (task<R>), and the nursery, which reuses the block.
//
//   the fiber    constructs the result, destroys the closure, marks the block finished: its last access, unless the
//                same step shows that somebody waits or has waited, or has cancelled the task: then the block's address
//                alone is used, to find them
//   the handle   reads the result once the block is finished; sets `dropped`: its last access
//   the nursery  reuses the block once it is finished and dropped
//
// Of fiber and handle, the second to come may see the mark of the first, or not; either way nobody destroys the result
// twice: the fiber only if it saw `dropped` before it finished, the handle only if it saw the end before it set
// `dropped`, else the nursery when it reuses the block. A task whose handle is gone, as after a plain n.spawn(f), ends
// without a read-modify-write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>

#include <ramie/detail/atomic.hpp>
#include <ramie/detail/fiber_ops.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

struct nursery_core;
struct task_block;

struct task_type : fiber_ops {
  void (*destroy_result)(task_block&) noexcept;  // null: there is nothing to destroy
  void (*destroy_closure)(task_block&) noexcept;
  std::size_t closure_at;  // offset in the block
};

// How far the end of a task is. One word, so that exactly one of two sees the other: who ends it, or who waits for it
// (task_wanted) or cancels it alone (task_targeted).
// These are the record's `marks`.
enum end_marks : std::uint8_t { task_finished = 1, task_wanted = 2, task_targeted = fiber_record::targeted };

// What a record `leaves` when its task ends. Nothing: the block is of the smallest size, the owner's own, and has no
// result that must be destroyed.
enum leftovers : std::uint8_t { leaves_result = 1, leaves_shared_block = 2, leaves_large_block = 4 };

enum class task_outcome : std::uint8_t { none, value, taken, failed, cancelled };

// Blocks have one of four sizes; larger or over-aligned ones stand alone.
inline constexpr std::size_t block_alignment = 64;  // a block shares no cache line with another
inline constexpr std::size_t smallest_block = 64;
inline constexpr std::uint8_t block_class_count = 4;
inline constexpr std::uint8_t solo_class = 0xff;
[[nodiscard]] constexpr std::uint8_t block_class_for(std::size_t bytes, std::size_t alignment) noexcept {
  for (std::uint8_t c = 0; c < block_class_count; ++c) {
    if (alignment <= block_alignment && bytes <= smallest_block << c) return c;
  }
  return solo_class;
}

// Where a block came from.
struct block_origin {
  std::uint8_t size_class = 0;
  bool shared = false;  // carved by a descendant of the owner, not by the owner
};
struct reserved_block {
  void* at;
  bool shared;
};

// The record's `ops`: null if the block holds no task (yet). Set last, with release: whoever looks for blocks to reuse
// must not see marks of the block's former life. The store has set it to null under its lock, and others may be looking
// while the block is made.
struct task_block : fiber_record {
  explicit task_block(block_origin from) noexcept : origin(from) {
    leaves = static_cast<std::uint8_t>((from.shared ? leaves_shared_block : 0) |
                                       (from.size_class != 0 ? leaves_large_block : 0));
  }
  // Of the smallest size, the owner's own, and a task of `home`.
  task_block(cancel_scope& home, source_location site) noexcept : fiber_record(no_task_yet{}) { make_task(home, site); }

  task_outcome outcome = task_outcome::none;
  block_origin origin;
};
static_assert(sizeof(task_block) == 32, "half of the smallest block is left for the result and the closure");

[[nodiscard]] inline bool has_finished(const task_block& task) noexcept {
  return (task.marks.load(std::memory_order_acquire) & task_finished) != 0;  // pairs with the releases in task_retired
}
[[nodiscard]] inline const task_type& task_type_of(const task_block& task) noexcept {
  return static_cast<const task_type&>(ops_of(task));
}

// Whoever may destroy it, by the rules above; at most once.
inline void destroy_result(task_block& task) noexcept {
  if ((task.leaves & leaves_result) == 0) return;
  task_type_of(task).destroy_result(task);
  task.leaves &= static_cast<std::uint8_t>(~leaves_result);
}

// The nursery's part of every fiber_ops. task_failed is called in a catch block.
fiber_end task_failed(task_block& task) noexcept;
void task_discarded(task_block& task, discard_cause why) noexcept;
void task_retired(fiber_record& task, cancel_scope& home, const cancel_scope* joiner) noexcept;
void task_aimed_at(fiber_record& task, fiber& f) noexcept;

template <class R>
struct result_holder : task_block {
  using stored = std::conditional_t<std::is_reference_v<R>, std::add_pointer_t<R>, std::remove_cv_t<R>>;
  explicit result_holder(block_origin from) noexcept : task_block(from) {}

  template <class Call>
  void store(Call&& call) {
    if constexpr (std::is_reference_v<R>) {
      ::new (static_cast<void*>(storage)) stored(std::addressof(call()));
    } else {
      ::new (static_cast<void*>(storage)) stored(call());
    }
    if constexpr (must_destroy) leaves |= leaves_result;
  }
  [[nodiscard]] stored& value() noexcept { return *std::launder(reinterpret_cast<stored*>(storage)); }
  static constexpr bool must_destroy = !std::is_trivially_destructible_v<stored>;
  static void destroy(task_block& self) noexcept { static_cast<result_holder&>(self).value().~stored(); }

  alignas(stored) std::byte storage[sizeof(stored)];
};

template <>
struct result_holder<void> : task_block {
  explicit result_holder(block_origin from) noexcept : task_block(from) {}
  template <class Call>
  void store(Call&& call) {
    call();
  }
  static constexpr bool must_destroy = false;
  static void destroy(task_block&) noexcept {}
};

// The bytes of a closure that can be copied as such.
struct closure_words {
  std::uint64_t first;
  std::uint64_t second;
};

// A callable with its arguments, all by value, called once.
template <class F, class... Args>
struct bound_call {
  F f;
  std::tuple<Args...> args;
  decltype(auto) operator()() && { return std::apply(std::move(f), std::move(args)); }
};

template <class Work, class R>
struct typed_task_block final : result_holder<R> {
  template <class... Parts>
  explicit typed_task_block(block_origin from, Parts&&... parts) : result_holder<R>(from) {
    if constexpr (sizeof...(Parts) == 1) {
      ::new (static_cast<void*>(closure)) Work(std::forward<Parts>(parts)...);
    } else {
      ::new (static_cast<void*>(closure)) Work{std::forward<Parts>(parts)...};
    }
    if (fits_words && closure != reinterpret_cast<std::byte*>(this) + closure_at()) std::abort();  // known when compiled
    this->ops.store(&type_of, std::memory_order_release);
  }

  // Whether a block made of a task_block and the bytes of its closure is as good as one that was constructed: spawn_words.
  static constexpr bool fits_words =
      std::is_trivially_copyable_v<Work> && sizeof(Work) <= sizeof(closure_words) &&
      alignof(Work) <= alignof(closure_words) && alignof(result_holder<R>) == alignof(closure_words);
  [[nodiscard]] static const task_type& type() noexcept { return type_of; }
  // Where the closure is, if fits_words: the first of the aligned places behind the base. (offsetof warns of such types,
  // and a pragma against that is forgotten by precompiled headers.)
  [[nodiscard]] static constexpr std::size_t closure_at() noexcept { return sizeof(result_holder<R>); }

 private:
  void destroy_closure() noexcept { work().~Work(); }
  [[nodiscard]] Work& work() noexcept { return *std::launder(reinterpret_cast<Work*>(closure)); }

  static fiber_end run(fiber_record& self) noexcept {
    auto& task = static_cast<typed_task_block&>(self);
    auto end = fiber_end::done;
    try {
      task.store([&task]() -> R { return std::invoke(std::move(task.work())); });
      task.outcome = task_outcome::value;
    } catch (...) {
      end = task_failed(task);
    }
    task.destroy_closure();
    return end;
  }
  static void discard(fiber_record& self, discard_cause why) noexcept {
    auto& task = static_cast<typed_task_block&>(self);
    task.destroy_closure();
    task_discarded(task, why);
  }

  static void destroy_closure_of(task_block& self) noexcept { static_cast<typed_task_block&>(self).destroy_closure(); }

  static constexpr task_type type_of{{&run, &discard, &task_retired, &task_aimed_at},
                                     result_holder<R>::must_destroy ? &result_holder<R>::destroy : nullptr,
                                     &destroy_closure_of, closure_at()};

  alignas(Work) alignas(closure_words) std::byte closure[sizeof(Work)];
};

}  // namespace ramie::nursery_internal
