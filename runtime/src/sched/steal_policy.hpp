// SPDX-License-Identifier: BSL-1.0
// Whether stealing pays. A fiber that is run by another worker than the one that made it costs a few hundred
// nanoseconds of cache misses on both sides; if it runs for less, stealing makes both slower. That can't be
// known beforehand, but a thief knows afterwards how long what it took has kept it busy:
//
//   it took n fibers, and was back for more after t    t / n is what each was worth, with all that came of it
//
// Fork-join trees are worth milliseconds, fibers that keep waking others as long as they go on. A thousand empty
// children are not worth the theft, and neither is a wake that finds the work already taken. After thefts that did not
// pay the worker naps: it sleeps for a moment in which no producer wakes it (the wake would cost the worker that the
// nap is to spare), and is counted as neither searching nor parked. It naps again as long as there is nothing to steal
// and the other workers make progress; if they do not, it sleeps like any other worker, until it is woken. Naps get
// longer, 64 us to 1 ms, until a theft pays; so that is how late help may be, once. Owner only.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::runtime_internal {

class steal_policy {
 public:
  // The worker goes to sleep until a producer wakes it.
  void sleeps() noexcept { nap_.set(platform::nanoseconds{0}); }
  // A producer has woken it.
  void woken() noexcept { woken_.set(true); }
  // It has something to run: the wake was not for nothing.
  void found_something() noexcept { woken_.set(false); }

  // `count` fibers come from elsewhere, all that the worker has.
  void on_steal(std::uint32_t count, platform::time_point now) noexcept {
    stolen_now_.set(count);
    since_.set(now);
  }
  // The worker, which took something, has nothing left. Whether it was enough to judge by.
  [[nodiscard]] bool has_stolen() const noexcept { return stolen_now_.get() != 0; }
  [[nodiscard]] bool on_exhausted(platform::time_point now) noexcept {
    taken_.add(stolen_now_.get());
    busy_.set(busy_.get() + (now - since_.get()));
    stolen_now_.set(0);
    return taken_.get() >= stolen_before_judging;
  }
  // Nothing is to be said about what was taken so far.
  void judge_later() noexcept {
    taken_.set(0);
    busy_.set(platform::nanoseconds{0});
  }
  // Whether not_needed() could be true: else it need not be asked, and the others' counts not be read.
  [[nodiscard]] bool may_be_unneeded() const noexcept {
    return woken_.get() || nap_.get() != platform::nanoseconds{0};
  }
  // True: the worker should nap. It has found nothing although it was woken, or the other workers, which have polled so
  // much in all, made progress during its last nap.
  [[nodiscard]] bool not_needed(std::uint64_t polls_of_others) noexcept {
    const bool they_get_on = nap_.get() != platform::nanoseconds{0} && polls_of_others != polls_of_others_.get();
    polls_of_others_.set(polls_of_others);
    if (they_get_on) woken_.set(true);
    return stolen_before_judging != ~0u && woken_.get();
  }

  // Then: how long it should nap before it searches again. Zero: not at all.
  [[nodiscard]] platform::nanoseconds nap_length() noexcept {
    const bool paid = !woken_.get() && busy_.get() >= taken_.get() * worthwhile_theft;
    judge_later();
    woken_.set(false);
    nap_.set(paid ? platform::nanoseconds{0} : std::clamp(2 * nap_.get(), shortest_nap, longest_nap));
    return nap_.get();
  }

 private:
  platform::owned<bool> woken_{false};
  platform::owned<std::uint32_t> stolen_now_{0};
  platform::owned<std::uint32_t> taken_{0};  // since it judged last
  platform::owned<std::uint64_t> polls_of_others_{0};
  platform::owned<platform::time_point> since_{};
  platform::owned<platform::nanoseconds> busy_{platform::nanoseconds{0}};  // with what was taken
  platform::owned<platform::nanoseconds> nap_{platform::nanoseconds{0}};
};

}  // namespace ramie::runtime_internal
