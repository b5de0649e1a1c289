// SPDX-License-Identifier: BSL-1.0
// The queue of those who wait for a lock or a signal, and the protocol that all classes of sync/ share.
//
//   M1  Each of these objects is one word and one queue. A bit of the word, `waiting`, is set if, and only if, a waiter
//       is listed: it is changed with the queue locked. Whoever finds it clear needs the word alone; whoever finds it
//       set and has something to hand over locks the queue.
//   M2  A waiter lists itself by setting the bit in the same RMW that finds its wait still needed, with the queue
//       locked. So what comes later finds the bit.
//   M3  Waiters are listed in the order in which they first came; one that was woken without an outcome keeps its
//       place.
//   M4  Whoever hands something over claims a waiter with the queue locked, and completes it after unlocking. The
//       claimed fiber can't run before that, and a waiter that was listed but could not be claimed locks the queue
//       before it leaves: so while an object has listed waiters, whoever holds the queue's lock may touch the object,
//       although what was handed over lets others believe that they are its last users. With no waiter listed, the RMW
//       on the word is the last touch. An object may therefore be destroyed as soon as nobody is inside one of its
//       waits and what it was for has happened.
#pragma once

#include <cstdint>

#include <ramie/detail/wait_queue.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::sync_internal {

using namespace runtime_internal;

struct queue_waiter : ordered_waiter {
  // It was listed when release_all came. Written with the queue locked; read by its fiber after it was unlisted.
  bool released = false;
};

// Holds the queue's lock. Never across a switch, nor while a waiter is completed.
class queue_guard {
 public:
  explicit queue_guard(wait_queue& q) noexcept : queue_(locked(q)), waiters_(q.first, q.last) {}
  ~queue_guard() {
    queue_.first = waiters_.first();
    queue_.last = waiters_.last();
    queue_.busy.store(false, std::memory_order_release);  // pairs with the exchange of the next
  }
  queue_guard(const queue_guard&) = delete;
  queue_guard& operator=(const queue_guard&) = delete;

  [[nodiscard]] bool empty() const noexcept { return waiters_.empty(); }
  template <class Waiter = waiter>
  [[nodiscard]] Waiter* first() const noexcept {
    return static_cast<Waiter*>(waiters_.first());
  }
  template <class Waiter = waiter>
  [[nodiscard]] Waiter* claim_first() noexcept {
    return static_cast<Waiter*>(waiters_.claim_first());
  }
  [[nodiscard]] bool claim_listed_first(waiter& first) noexcept { return waiters_.claim_listed_first(first); }
  void list(queue_waiter& node) noexcept { waiters_.add_in_order(node, queue_.places); }
  void remove(waiter& node) noexcept { waiters_.remove(node); }
  // Every listed waiter goes on. One that can't be claimed, because it is awake for another reason, looks at
  // `released`.
  void release_all(wake_batch& wakes) noexcept {
    while (auto* const node = first<queue_waiter>()) {
      node->released = true;
      if (claim_listed_first(*node)) wakes.add(*node, 1);
    }
  }

 private:
  static wait_queue& locked(wait_queue& q) noexcept {
    while (q.busy.exchange(true, std::memory_order_acquire)) {  // pairs with the release of the last holder
      for (platform::backoff turn; q.busy.load(std::memory_order_relaxed);) turn.wait();
    }
    return q;
  }

  wait_queue& queue_;
  wait_list waiters_;
};

// Unlists a waiter that leaves; the word's `waiting` bit is cleared after the last. For objects where nothing is left
// for the others when a waiter goes.
template <class Core, class Bit>
void unlist(Core& c, waiter& me, Bit waiting) noexcept {
  queue_guard hold(c.waiters);
  hold.remove(me);
  if (hold.empty()) c.word.fetch_and(~waiting, std::memory_order_relaxed);
}

// Lists a waiter in its place, and serves it at once if that is possible: as everybody who has something to hand over does,
// by a claim, because as one of several cases of a select it may have got something else meanwhile. For objects that deal
// out from the front; serve(seen, hold, wakes) does so, `seen` is the word as it was. Always true: it has been published.
template <class Core, class Bit, class Serve>
[[nodiscard]] bool list_and_serve(Core& c, queue_waiter& me, Bit waiting, Serve serve) noexcept {
  wake_batch wakes;
  queue_guard hold(c.waiters);
  // Pairs with the releases of what is dealt out.
  const auto seen = c.word.fetch_or(waiting, std::memory_order_acquire);
  hold.list(me);
  serve(seen, hold, wakes);
  return true;
}

// The waitable of an object. Word: what can be done with the object's core (`mutex_word` …), with
//   core, node                  the types of the object and of a waiter's node
//   try_complete(core, node)    as of a waitable
//   publish(core, node)
//   unpublish(core, node)
//   publish_only(core, node)    of a case of a select (ready_source.hpp), whose publish takes nothing; only where the
//                               lone waiter's publish would
template <class Word, bool InSelect = false>
class waitable_of final : public waitable {
 public:
  using core = typename Word::core;
  using node = typename Word::node;
  explicit waitable_of(core& c) noexcept : core_(c) {}
  static waitable_of of(const ready_source& from) noexcept { return waitable_of(*static_cast<core*>(from.what)); }
  bool try_complete(waiter& me) override { return Word::try_complete(core_, static_cast<node&>(me)); }
  bool publish(waiter& me) override {
    if constexpr (InSelect && requires(core& c, node& mine) { Word::publish_only(c, mine); }) {
      return Word::publish_only(core_, static_cast<node&>(me));
    } else {
      return Word::publish(core_, static_cast<node&>(me));
    }
  }
  void unpublish(waiter& me) noexcept override { Word::unpublish(core_, static_cast<node&>(me)); }

 private:
  core& core_;
};

template <class Word>
using case_of = waitable_of<Word, true>;

}  // namespace ramie::sync_internal
