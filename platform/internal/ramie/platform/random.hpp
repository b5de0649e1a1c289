// SPDX-License-Identifier: BSL-1.0
// Random numbers for scheduling, jitter and injected faults: fast and repeatable, no good for secrets.
//
//   xorshift   the cheaper one: a worker's victims, the order of a select's cases. Its state is never 0.
//   splitmix   seeds that follow each other give unrelated streams: for numbers that are drawn from a user's seed.
#pragma once

#include <cstdint>

#include <ramie/platform/atomic.hpp>

namespace ramie::platform {

// `bits` scaled to 0 … bound - 1, from its upper half.
[[nodiscard]] constexpr std::uint32_t scaled_below(std::uint64_t bits, std::uint32_t bound) noexcept {
  return static_cast<std::uint32_t>((bits >> 32) * bound >> 32);
}

// xorshift64: the state that follows `x`, which is also the number drawn. `x` must not be 0, and the result isn't.
[[nodiscard]] constexpr std::uint64_t xorshift_step(std::uint64_t x) noexcept {
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

// splitmix64: the state advances by `splitmix_increment`; `splitmix_of` makes the number from the new state. Apart from
// each other, so that threads may share an atomic state.
inline constexpr std::uint64_t splitmix_increment = 0x9e3779b97f4a7c15;
[[nodiscard]] constexpr std::uint64_t splitmix_of(std::uint64_t state) noexcept {
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

// The seed of worker `index` of a runtime with that seed: another one for each, and none of them small.
[[nodiscard]] constexpr std::uint64_t seed_of_worker(std::uint64_t seed, unsigned index) noexcept {
  return (seed + index + 1) * 0xd1342543de82ef95;
}

// Owned by one thread, or by the fibers that run on it in turn.
class xorshift {
 public:
  explicit xorshift(std::uint64_t seed) noexcept : state_(seed | 1) {}
  std::uint64_t next() noexcept {
    const auto x = xorshift_step(state_.get());
    state_.set(x);
    return x;
  }
  std::uint32_t below(std::uint32_t bound) noexcept { return scaled_below(next(), bound); }

 private:
  owned<std::uint64_t> state_;
};

// Not synchronised.
class splitmix {
 public:
  explicit splitmix(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept { return splitmix_of(state_ += splitmix_increment); }
  std::uint32_t below(std::uint32_t bound) noexcept { return scaled_below(next(), bound); }

 private:
  std::uint64_t state_;
};

}  // namespace ramie::platform
