// SPDX-License-Identifier: BSL-1.0
// Whether stealing pays. A fiber that is run by another worker than the one that made it costs a few hundred
// nanoseconds of cache misses on both sides; if it runs for less, everybody is better off without help. Nobody knows
// beforehand, but a thief knows afterwards how long what it took has kept it busy:
//
//   it took n fibers, and was back for more after t    t / n is what each was worth, with all that came of it
//
// Fork-join trees are worth milliseconds, fibers that keep waking others as long as they go on; a thousand empty
// children are crumbs, and so is being woken for what is gone before one is there. After crumbs the worker naps: it
// sleeps for a moment in which nobody tries to wake it (that would cost the one it means to spare), and is neither
// searching nor parked. It naps again as long as there is nothing for it and the others get on; if they do not, it
// sleeps like anybody, with a call for company as its end. Naps get longer, 64 us to 1 ms, until a theft pays; so that
// is how late help may be, once. Owner only.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ramie/platform/atomic.hpp>
#include <ramie/platform/clock.hpp>
#include <ramie/runtime/constants.hpp>

namespace ramie::detail {

class thrift {
 public:
  // The worker sleeps until somebody wakes it: then there must be something.
  void sleeps() noexcept { nap_.set(platform::nanoseconds{0}); }
  void called() noexcept { called_.set(true); }
  void found_something() noexcept { called_.set(false); }

  // `count` fibers come from elsewhere, all that the worker has.
  void took(std::uint32_t count, platform::time_point now) noexcept {
    loot_.set(count);
    since_.set(now);
  }
  // The worker, which took something, has nothing left. Whether it was enough to judge by.
  [[nodiscard]] bool is_back() const noexcept { return loot_.get() != 0; }
  [[nodiscard]] bool back(platform::time_point now) noexcept {
    taken_.add(loot_.get());
    busy_.set(busy_.get() + (now - since_.get()));
    loot_.set(0);
    return taken_.get() >= telling_loot;
  }
  // Or there is nothing, and it was called, or has napped and the others, who have polled so much, got on meanwhile.
  [[nodiscard]] bool not_needed(std::uint64_t polls_of_others) noexcept {
    const bool they_get_on = nap_.get() != platform::nanoseconds{0} && polls_of_others != polls_of_others_.get();
    polls_of_others_.set(polls_of_others);
    if (they_get_on) called_.set(true);
    return telling_loot != ~0u && called_.get();
  }

  // Then: how long it should nap before it searches again. Zero: not at all.
  [[nodiscard]] platform::nanoseconds judge() noexcept {
    const bool paid = !called_.get() && busy_.get() >= taken_.get() * crumb;
    taken_.set(0);
    busy_.set(platform::nanoseconds{0});
    called_.set(false);
    nap_.set(paid ? platform::nanoseconds{0} : std::clamp(2 * nap_.get(), shortest_nap, longest_nap));
    return nap_.get();
  }

 private:
  platform::owned<bool> called_{false};
  platform::owned<std::uint32_t> loot_{0};
  platform::owned<std::uint32_t> taken_{0};  // since it judged last
  platform::owned<std::uint64_t> polls_of_others_{0};
  platform::owned<platform::time_point> since_{};
  platform::owned<platform::nanoseconds> busy_{platform::nanoseconds{0}};  // with what was taken
  platform::owned<platform::nanoseconds> nap_{platform::nanoseconds{0}};
};

}  // namespace ramie::detail
