// SPDX-License-Identifier: BSL-1.0
// What "reads" is in the C++ programs: 4 KiB at random places of a file that lies in the page cache.
#pragma once

#include <cstdint>

#include <compare/program.hpp>
#include <compare/random.hpp>

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
      : random_(reader), blocks_(static_cast<std::uint64_t>(blocks)) {}
  long next() { return static_cast<long>(random_.next() % blocks_) * read_size; }

 private:
  splitmix random_;
  std::uint64_t blocks_;
};

}  // namespace compare
