// SPDX-License-Identifier: BSL-1.0
// Time that a test moves by hand.
#pragma once

#include <chrono>
#include <memory>

#include <ramie/version.hpp>

namespace ramie::platform {
class virtual_clock;
}
namespace ramie::runtime_internal {
class scheduler;
}

namespace ramie::inline v0 {

// A clock that stands still until it is advanced. A runtime made with `options.clock` pointing to one takes
// its deadlines from it; the clock must outlive the runtime.
class manual_clock {
 public:
  // Stands at steady_clock's time 0. Throws std::bad_alloc.
  manual_clock();
  ~manual_clock();
  manual_clock(const manual_clock&) = delete;
  manual_clock& operator=(const manual_clock&) = delete;

  // Any thread or fiber. Deadlines that have come fire before it returns, and the callbacks of stop tokens that they
  // stop are called there: those must not wait, nor advance the clock. Not a cancellation point.
  void advance(std::chrono::nanoseconds by);
  // The time it stands at. Any thread or fiber. Not a cancellation point.
  [[nodiscard]] std::chrono::steady_clock::time_point now() const noexcept;

 protected:
  explicit manual_clock(bool advances_itself);  // testing::virtual_clock

 private:
  friend class ::ramie::runtime_internal::scheduler;

  std::unique_ptr<platform::virtual_clock> clock_;
};

// The time by the clock of the calling fiber's runtime; on a plain thread, std::chrono::steady_clock's. Not a
// cancellation point.
[[nodiscard]] std::chrono::steady_clock::time_point now() noexcept;

}  // namespace ramie::inline v0

namespace ramie::runtime_internal {

// Now plus a duration; durations beyond what the clock can tell mean never.
template <class Rep, class Period>
[[nodiscard]] std::chrono::steady_clock::time_point time_after(
    std::chrono::duration<Rep, Period> limit, std::chrono::steady_clock::time_point start = now()) noexcept {
  using clock = std::chrono::steady_clock;
  if (!(limit > std::chrono::duration<Rep, Period>::zero())) return start;
  const std::chrono::duration<double> room = clock::time_point::max() - start;
  if (std::chrono::duration<double>(limit) >= room * 0.999) return clock::time_point::max();
  return start + std::chrono::ceil<clock::duration>(limit);
}

}  // namespace ramie::runtime_internal
