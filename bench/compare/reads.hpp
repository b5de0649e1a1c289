// SPDX-License-Identifier: BSL-1.0
// What "reads" is in the C++ programs: 4 KiB at random places of a file that lies in the page cache.
#pragma once

#include <cstdint>

#include <compare/program.hpp>

namespace compare {

inline constexpr long read_size = 4096;

// Made by tools/bench.
inline std::string file_to_read() {
  const char* const folder = std::getenv("COMPARE_FILES");
  if (folder == nullptr) fail("COMPARE_FILES is not set");
  return std::string(folder) + "/reads";
}

// Offsets of blocks, by splitmix64 from the reader's number.
class places_to_read {
 public:
  places_to_read(long reader, long blocks)
      : state_(static_cast<std::uint64_t>(reader)), blocks_(static_cast<std::uint64_t>(blocks)) {}
  long next() {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return static_cast<long>((z ^ (z >> 31)) % blocks_) * read_size;
  }

 private:
  std::uint64_t state_, blocks_;
};

}  // namespace compare
