// SPDX-License-Identifier: BSL-1.0
// Loops whose indices are divided among workers, as they ask for some.
//
// The calling fiber has one entry in a ring while it works through its indices: the offer of the upper half of those that
// are left. A worker that takes the entry runs a fiber, which takes that half as a part of its own, with an offer of its
// own, and first offers what its victim still has again. All of it is on the stacks of those fibers:
//
//       caller                     part [0, 100)    offer: half of it
//       fiber that took that       part [50, 100)   offer: half of it; below that in the ring: the caller's again
//
// Invariants
//   P1  A part has at most one offer in a queue or being split (IX2 of index_range.hpp).
//   P2  Offers of one fiber nest (FK2 of fork.hpp). So a fiber ends its own part before it takes back its victim's offer;
//       if it gets that back, it takes half of what the victim has left, and so on.
//   P3  Whoever has made an offer waits for its end: parts, and the body of the loop, are there as long as anybody uses
//       them.
#include <ramie/parallel.hpp>

#include <mutex>
#include <utility>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/thread.hpp>

#include "index_range.hpp"

namespace ramie::nursery_internal {

namespace {

constexpr const char* for_name = "parallel_for";

// Calls between two looks at what else is due, and at cancellations.
constexpr std::uint32_t calls_per_look = 16;

struct loop {
  const loop_body& body;
  platform::atomic<bool> stopped{false};  // a call has thrown: none is to be begun
};

}  // namespace

class loop_part {
 public:
  loop_part(loop& of, index_range::piece first_share) noexcept : whole(of), indices(first_share) {}

  loop& whole;
  index_range indices;
  std::uint32_t until_look = calls_per_look;
};

namespace {

void take_shares(loop_part& victim);

// The upper half of what a part has left.
struct offer final : fork_record {
  explicit offer(loop_part& part) noexcept
      : fork_record([](fork_record& self) { take_shares(static_cast<offer&>(self).of); }), of(part) {}
  loop_part& of;
};

// Does `work`, and meanwhile offers half of what `of` has left, pushing that by `push`. True: the offer came back, or
// nothing was done.
template <class Push, class Work>
bool with_offer(loop_part& of, Push push, Work work) {
  offer mine(of);
  const auto pushed = of.indices.any_left() ? push(mine) : fork_push::alone;
  if (pushed == fork_push::not_plain) [[unlikely]]
    return true;
  try {
    work();
  } catch (...) {
    of.whole.stopped.store(true, std::memory_order_relaxed);
    if (pushed == fork_push::pushed) (void)drop_fork(mine);
    throw;
  }
  return pushed == fork_push::alone || take_fork(mine);
}

// False: nothing was done, the calls can't be forks.
bool work_through(loop_part& part) {
  const loop_body& body = part.whole.body;
  auto pushed = fork_push::alone;
  const auto push = [&](offer& mine) { return pushed = push_fork(mine, body.site, for_name); };
  (void)with_offer(part, push, [&] { body.call_all(body.f, part); });
  return pushed != fork_push::not_plain;
}

// As the fiber that has taken an offer. Once its share is done it takes another one, if nobody else has taken the offer
// that it has made for its victim.
void take_shares(loop_part& victim) {
  for (bool came_back = true; came_back && !victim.whole.stopped.load(std::memory_order_relaxed);) {
    const auto share = victim.indices.split();
    if (share.empty()) return;
    loop_part mine(victim.whole, share);
    const loop_body& body = mine.whole.body;
    const auto push = [&](offer& half) { return push_fork_again(half, body.site); };
    came_back = with_offer(victim, push, [&] {
      (void)with_offer(mine, push, [&] { body.call_all(body.f, mine); });
    });
  }
}

// A child for each call: under a policy, which decides about fibers; and for a caller that unwinds, or has fiber-local
// values to inherit.
void call_as_children(std::size_t count, const loop_body& body) {
  struct call final : fork_record {
    call(const loop_body& of, std::size_t which) noexcept
        : fork_record([](fork_record& self) {
            auto& me = static_cast<call&>(self);
            me.body.call_one(me.body.f, me.index);
          }),
          body(of),
          index(which) {}
    const loop_body& body;
    const std::size_t index;
  };
  platform::atomic<bool> stopped{false};
  fork_failures failures;
  platform::mutex of_failures;
  with_nursery(
      [&](nursery& n) {
        for (std::size_t i = 0; i < count; ++i) {
          n.spawn(
              [&, i] {
                if (stopped.load(std::memory_order_relaxed)) return;
                call one(body, i);
                run_fork_as_child(one);
                if (one.outcome == fork_outcome::done) return;
                stopped.store(true, std::memory_order_relaxed);
                std::lock_guard hold(of_failures);
                failures.add(one);
              },
              body.site);
        }
      },
      body.site);
  failures.rethrow();
}

}  // namespace

namespace {

std::size_t take_index(loop_part& part) noexcept {
  std::size_t index;
  return part.indices.take(index) ? index : no_index;
}
// Out of line, so that the fast path needs no frame.
[[gnu::noinline]] std::size_t next_index_slow(loop_part& part) {
  if (part.whole.stopped.load(std::memory_order_relaxed)) return no_index;
  part.until_look = calls_per_look;
  look_around(calls_per_look);
  return take_index(part);
}

}  // namespace

std::size_t next_index(loop_part& part) {
  if (part.whole.stopped.load(std::memory_order_relaxed) || --part.until_look == 0) [[unlikely]]
    return next_index_slow(part);
  return take_index(part);
}

void run_loop(std::size_t count, const loop_body& body) {
  if (count <= 1) {
    begin_calls(for_name);
    if (count == 1) body.call_one(body.f, 0);
    return;
  }
  loop whole{body};
  loop_part all(whole, {0, count});
  if (work_through(all)) [[likely]]
    return;
  if (!call_in_reach(body.site, [&] { return work_through(all); })) call_as_children(count, body);
}

void run_fork_as_child(fork_record& part) {
  if (run_fork(part) == fiber_end::cancelled) std::rethrow_exception(std::move(part.failure));
}

fork_failures::~fork_failures() {
  if (first_ != nullptr) report_fork_failure(first_);
}

void fork_failures::add(fork_record& part) noexcept {
  if (part.outcome != fork_outcome::failed) return;
  if (first_ != nullptr) return report_fork_failure(part.failure);
  first_ = std::move(part.failure);
}

void fork_failures::rethrow() {
  if (first_ != nullptr) std::rethrow_exception(std::exchange(first_, nullptr));
}

}  // namespace ramie::nursery_internal
