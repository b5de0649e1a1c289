// SPDX-License-Identifier: BSL-1.0
// What a fiber runs, as the runtime sees it: a record, and functions over it. Not part of the API; templates
// of the public headers make these.
#pragma once

#include <bit>
#include <cstdint>

#include <ramie/detail/atomic.hpp>
#include <ramie/source_location.hpp>

namespace ramie::runtime_internal {

class cancel_scope;
class fiber;
struct fiber_ops;
struct fiber_extras;  // its name and its fiber-local values; most fibers have neither

// Something that is used again and again, whose memory stays: which of its lives it is in. Readers on other threads.
struct with_lives {
  atomic<std::uint64_t> life{1};
};

// Two words have two meanings each. Before the fiber has a frame (a *task*: spawned in the plain way, and not started;
// or a *fork*, a part of a call that its caller makes itself unless a worker takes it first: fork.hpp) they say where it
// belongs and where it was spawned; from then on, which frame it has, and what few fibers have.
//
//       who starts it                           who describes it (describe_briefly)
//       1. the second word = null               1. is the place a task's?
//       2. the place = the frame     (release)  2. load the second word            (acquire)
//       3. later: the second word = extras      3. not null, and the place is still a task's? then it is the site;
//                                    (release)     else it is about to have its frame: begin again
//
// Extras in 2 mean that 3 finds the frame. Whoever finds the frame in 1 sees that the second word is no site.
class fiber_record {
 public:
  fiber_record() noexcept : place_{0}, extras_or_site_{0} {}  // NOLINT: `ops` stays as it is, see there
  // Is to be made a task.
  struct no_task_yet {};
  explicit fiber_record(no_task_yet) noexcept {}  // NOLINT

  // What the fiber runs; the spawner's to set. A room above may give it a meaning before that: making a record leaves
  // it alone.
  union {
    atomic<const fiber_ops*> ops;
  };

  // Null: a task, or not spawned.
  [[nodiscard]] fiber* frame(std::memory_order order = std::memory_order_relaxed) const noexcept {
    const auto at = place_.load(order);
    return (at & is_task) == 0 ? reinterpret_cast<fiber*>(at) : nullptr;
  }
  void set_frame(fiber* f) noexcept { place_.store(reinterpret_cast<std::uintptr_t>(f), std::memory_order_release); }

  // Of a fiber that is not a task: its own, or null; freed by the runtime when it ends.
  [[nodiscard]] fiber_extras* extras() const noexcept {
    return reinterpret_cast<fiber_extras*>(extras_or_site_.load(std::memory_order_relaxed));
  }
  void set_extras(fiber_extras* e) noexcept {
    extras_or_site_.store(reinterpret_cast<std::uintptr_t>(e), std::memory_order_release);
  }

  // A task: its home, and where it was spawned.
  void make_task(cancel_scope& home, source_location site) noexcept {
    extras_or_site_.store(std::bit_cast<std::uintptr_t>(site), std::memory_order_relaxed);
    place_.store(reinterpret_cast<std::uintptr_t>(&home) | is_task, std::memory_order_relaxed);
  }
  // A fork: a task that no nursery counts, so no join calls it in place as its own child.
  void make_fork(cancel_scope& home, source_location site) noexcept {
    extras_or_site_.store(std::bit_cast<std::uintptr_t>(site), std::memory_order_relaxed);
    place_.store(reinterpret_cast<std::uintptr_t>(&home) | is_task | is_fork, std::memory_order_relaxed);
  }
  [[nodiscard]] bool is_unstarted_fork() const noexcept {
    return (place_.load(std::memory_order_relaxed) & (is_task | is_fork)) == (is_task | is_fork);
  }
  [[nodiscard]] bool is_task_of(const cancel_scope& home) const noexcept {
    return place_.load(std::memory_order_relaxed) == (reinterpret_cast<std::uintptr_t>(&home) | is_task);
  }
  [[nodiscard]] bool is_unstarted_task(std::memory_order order = std::memory_order_relaxed) const noexcept {
    return (place_.load(order) & is_task) != 0;
  }
  [[nodiscard]] cancel_scope& task_home() const noexcept {
    return *reinterpret_cast<cancel_scope*>(place_.load(std::memory_order_relaxed) & ~(is_task | is_fork));
  }
  [[nodiscard]] source_location task_site() const noexcept {
    return std::bit_cast<source_location>(extras_or_site_.load(std::memory_order_acquire));
  }
  // It gets its frame, and is no task any more.
  void start_task(fiber* f) noexcept {
    extras_or_site_.store(0, std::memory_order_relaxed);
    set_frame(f);
  }

  [[nodiscard]] bool ends_plainly() const noexcept {
    if ((marks.load(std::memory_order_relaxed) | leaves) != 0) return false;
    return dropped.load(std::memory_order_acquire);
  }

  // For lists of records without a fiber.
  [[nodiscard]] fiber_record* next_unused() const noexcept {
    return reinterpret_cast<fiber_record*>(place_.load(std::memory_order_relaxed));
  }
  void set_next_unused(fiber_record* next) noexcept {
    place_.store(reinterpret_cast<std::uintptr_t>(next), std::memory_order_relaxed);
  }

 private:
  static constexpr std::uintptr_t is_task = 1;
  static constexpr std::uintptr_t is_fork = 2;
  static_assert(sizeof(source_location) == sizeof(std::uintptr_t));

  union {  // a record that is made as a task writes them once
    atomic<std::uintptr_t> place_;
  };
  union {
    atomic<std::uintptr_t> extras_or_site_;
  };

 public:  // the last members: what derives from the record goes on in the same word
  // Marks that whoever made the record gives it. The runtime knows one of them: the fiber was cancelled alone, perhaps
  // before it had a frame (fiber_ops::aimed_at).
  static constexpr std::uint8_t targeted = 4;
  atomic<std::uint8_t> marks{0};
  atomic<bool> dropped{false};  // nobody has a handle on it
  // What is left to do for its maker when it ends, besides using its memory again. 0: nothing.
  std::uint8_t leaves = 0;
};

// Records without a fiber, the last one put in first. One thread at a time.
class record_list {
 public:
  // Null: there is none.
  [[nodiscard]] fiber_record* take() noexcept {
    fiber_record* const first = first_;
    if (first != nullptr) [[likely]]
      first_ = first->next_unused();
    return first;
  }
  void put(fiber_record& record) noexcept {
    record.ops.store(nullptr, std::memory_order_relaxed);
    record.set_next_unused(first_);
    first_ = &record;
  }
  [[nodiscard]] bool empty() const noexcept { return first_ == nullptr; }
  void clear() noexcept { first_ = nullptr; }

 private:
  fiber_record* first_ = nullptr;
};

// What became of a spawn in the plain way. If it is not `done`, nothing has happened.
enum class task_spawn : std::uint8_t {
  done,
  not_plain,  // the fiber needs a frame from the start
  no_memory,
};

enum class fiber_end : std::uint8_t { done, cancelled };

enum class discard_cause : std::uint8_t {
  cancelled,  // its scope was cancelled before it started
  no_stack,   // no stack could be had; see stack_exhausted
  no_memory,  // no frame could be had
};

// Exactly one of run and discard is called, as the fiber (discard for want of a stack: as the scheduler), then retire,
// as the scheduler. None may throw. The scheduler's own code must not wait.
// After retire the runtime does not touch the record. `home` is the scope the fiber was spawned into;
// `joiner` is the scope whose join called the fiber in place, or null: if both are one, the owner of that
// scope is the caller of retire, below the fiber on the same stack.
struct fiber_ops {
  fiber_end (*run)(fiber_record& self) noexcept;
  void (*discard)(fiber_record& self, discard_cause why) noexcept;
  void (*retire)(fiber_record& self, cancel_scope& home, const cancel_scope* joiner) noexcept;
  // A task has just got its frame, and was marked as targeted before that. May be null for records that never are.
  void (*aimed_at)(fiber_record& self, fiber& f) noexcept = nullptr;
};

[[nodiscard]] inline const fiber_ops& ops_of(const fiber_record& record) noexcept {
  return *record.ops.load(std::memory_order_relaxed);
}

}  // namespace ramie::runtime_internal
