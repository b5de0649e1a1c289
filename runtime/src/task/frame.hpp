// SPDX-License-Identifier: BSL-1.0
// The frame of a fiber: 128 bytes, pooled, never given back to the system before the runtime ends, so
// that a stale waker may always look at its word and its ticket.
//
// Plain fields belong to the owner of the word's current state (task/state.hpp). Its first cache line has what parking,
// waking and switching touch: a wait among thousands of others fetches no more than that. The second has what spawning,
// starting, parking for the first time and dumps touch. The assertions below the class hold this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ramie/source_location.hpp>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/context.hpp>
#include <ramie/platform/thread_parker.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/constants.hpp>
#include <ramie/runtime/current.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/runtime/wait.hpp>

#include "state.hpp"

namespace ramie::runtime_internal {

class alignas(frame_bytes) fiber : public fiber_head {
 public:
  fiber_word word;
  platform::atomic<std::uint64_t> wait_ticket{0};          // bumped per publication, kept when the frame is recycled
  platform::owned<platform::stack_block*> stack{nullptr};  // null until it first leaves its first one, and in the pool
  platform::context resume_point = nullptr;                // while it is suspended there
  platform::owned<const wait_reason*> reason{nullptr};
  std::uint32_t number = 0;  // of the frame; unique among live fibers
  std::uint8_t size_class = 0;
  bool linked = false;                         // in home's list
  std::uint8_t cancel_delivered = 0;           // times it got `cancelled` without having left that scope, up to 2
  platform::owned<std::uint8_t> held_back{0};  // chaos mode: polls it still has to let pass

  scope_link link;               // in home's list of fibers that have parked
  cancel_scope* home = nullptr;  // the scope it was spawned into; null: a plain thread's proxy
  fiber_record* record = nullptr;
  platform::owned<source_location> site{};
  // 0 when it is spawned; else written by policies only. Chaos: the index of the worker it last ran on, plus one.
  // Explore: the fiber's number in the director.
  platform::owned<std::uint16_t> last_worker{0};
  // True while `record` and its extras may be read by another thread that holds the lock of names (extras.cpp).
  platform::owned<bool> has_extras{false};
  // The fiber has left its first stack, is or was in home's list, has been thrown a cancellation, ends as cancelled, or has
  // extras: its frame can't simply be the next fiber's.
  bool touched = false;
  // Whatever cancels the fiber reaches its forks, too: nobody can cancel it alone, or it has opened a scope for them.
  bool reaches_forks = false;

  // What a new fiber begins with, besides its record and its word. The owner of the frame.
  void begin_life(cancel_scope& in, std::uint8_t stack_class, source_location spawned_at) noexcept {
    scope = home = &in;
    site.set(spawned_at);
    last_worker.set(0);
    size_class = stack_class;
    cancel_delivered = 0;
    touched = false;
    reaches_forks = false;
    set_own_scope(nullptr);
  }
  // The ticket of its last wait, as the word has it.
  [[nodiscard]] std::uint16_t low_ticket() const noexcept {
    return static_cast<std::uint16_t>(wait_ticket.load(std::memory_order_relaxed));
  }

  [[nodiscard]] bool is_proxy() const noexcept { return home == nullptr; }
  // Of a live fiber. Null: a proxy.
  [[nodiscard]] scheduler* owner() const noexcept { return is_proxy() ? nullptr : &home->owner_scheduler(); }
  [[nodiscard]] static inline fiber& of_link(scope_link& l) noexcept;

  // In a pool: the next frame there.
  [[nodiscard]] fiber* next() const noexcept {
    return static_cast<fiber*>(next_or_own_.load(std::memory_order_relaxed));
  }
  void set_next(fiber* f) noexcept { next_or_own_.store(f, std::memory_order_relaxed); }
  // While a fiber lives: the scope that cancels it alone, or null (cancel_scope.hpp). Read by the fiber and by those
  // inside its scopes. Null again before the frame goes to a pool.
  [[nodiscard]] cancel_scope* own_scope() const noexcept {
    return static_cast<cancel_scope*>(next_or_own_.load(std::memory_order_acquire));  // pairs with the release below
  }
  void set_own_scope(cancel_scope* s) noexcept { next_or_own_.store(s, std::memory_order_release); }

 private:
  platform::atomic<void*> next_or_own_{nullptr};
};

// offsetof of a class with a base is "conditionally supported": both compilers do.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
static_assert(sizeof(fiber) == frame_bytes && frame_bytes == 128, "the frame is two cache lines");
static_assert(alignof(fiber) == frame_bytes);
static_assert(offsetof(fiber, scope) == 0, "head_of: fiber_head is the first base");
// What a park, a wake and a switch touch.
static_assert(offsetof(fiber, seen_epoch) < 64 && offsetof(fiber, word) < 64 && offsetof(fiber, wait_ticket) < 64);
static_assert(offsetof(fiber, stack) < 64 && offsetof(fiber, resume_point) < 64 && offsetof(fiber, reason) < 64);
static_assert(offsetof(fiber, size_class) < 64 && offsetof(fiber, linked) < 64 && offsetof(fiber, held_back) < 64);
static_assert(offsetof(fiber, link) == 64, "the second cache line begins with what only a first park and an end touch");

fiber& fiber::of_link(scope_link& l) noexcept {
  return *reinterpret_cast<fiber*>(reinterpret_cast<char*>(&l) - offsetof(fiber, link));
}
#pragma GCC diagnostic pop

// A plain thread as a fiber: its park is a futex wait. Pooled for the life of the process (wait/self.cpp).
struct proxy_fiber : fiber {
  platform::thread_parker parker;
  fiber_record own_record;
  proxy_fiber* made_before = nullptr;
  proxy_fiber* next_idle = nullptr;
};

// For tests, which show that proxies are used again.
struct proxy_census {
  std::size_t made = 0;
  std::size_t idle = 0;  // of those, the ones that no thread has
};
[[nodiscard]] proxy_census count_proxies();

// The calling fiber, or the calling thread's proxy. Fatal in scheduler code.
[[nodiscard]] fiber& self();
// Like self(), but null if the thread has no proxy yet.
[[nodiscard]] fiber* known_self() noexcept;
[[noreturn]] void no_fiber_to_wait() noexcept;
// The calling fiber, or null on a plain thread and in scheduler code.
[[nodiscard]] fiber* current_fiber() noexcept;

}  // namespace ramie::runtime_internal
