// SPDX-License-Identifier: BSL-1.0
// splitmix64, which the programs in Go and Rust have, too: all of them sleep and read alike.
#pragma once

#include <cstdint>

namespace compare {

class splitmix {
 public:
  explicit splitmix(long seed) : state_(static_cast<std::uint64_t>(seed)) {}
  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

 private:
  std::uint64_t state_;
};

}  // namespace compare
