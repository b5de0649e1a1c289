// SPDX-License-Identifier: BSL-1.0
// The random numbers of tests: the same for a seed on every platform. Apart from the runtime's own
// (platform/random.hpp), so that a flaw of those can't hide in what they are tested with.
#pragma once

#include <cstdint>

namespace test {

// splitmix64
class dice {
 public:
  explicit dice(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t operator()() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  // 0 to n - 1.
  unsigned below(std::uint64_t n) noexcept { return static_cast<unsigned>((*this)() % n); }
  bool one_in(unsigned n) noexcept { return below(n) == 0; }

 private:
  std::uint64_t state_;
};

}  // namespace test
