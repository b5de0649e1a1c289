// SPDX-License-Identifier: BSL-1.0
// The cost model of tools/bench scale: which virtual processor has which line, and who waits for whom.
#include "bench/scale/cache_lines.hpp"
#include <support/test.hpp>

namespace unit_cache_lines {

using scale::cache_lines;

constexpr scale::picoseconds transfer = 60'000;

// How many of the accesses had to fetch the line.
struct machine {
  cache_lines lines{transfer};
  scale::picoseconds clocks[4] = {};
  int transfers = 0;

  void read(unsigned processor, std::uintptr_t address) { access(processor, address, false); }
  void write(unsigned processor, std::uintptr_t address) { access(processor, address, true); }

 private:
  void access(unsigned processor, std::uintptr_t address, bool writes) {
    const auto got = lines.access(processor, address, writes, clocks[processor]);
    clocks[processor] = got.ready;
    if (got.transferred) ++transfers;
  }
};

TEST_CASE("a line that one processor uses costs nothing", "[unit]") {
  machine m;
  for (int i = 0; i < 10; ++i) {
    m.write(0, 640);
    m.read(0, 703);
    m.write(1, 704);  // the next line
  }
  CHECK(m.transfers == 0);
  CHECK(m.clocks[0] == 0);
  CHECK(m.clocks[1] == 0);
  CHECK(m.lines.lines() == 2);
}

TEST_CASE("two processors that write a line in turns pay a transfer each time", "[unit]") {
  machine m;
  m.write(0, 640);
  for (int i = 0; i < 5; ++i) {
    m.write(1, 648);
    m.write(0, 640);
  }
  CHECK(m.transfers == 10);
  CHECK(m.clocks[0] == 10 * transfer);  // one after the other
  CHECK(m.clocks[1] == 9 * transfer);
}

TEST_CASE("a line that is only read is fetched once by each", "[unit]") {
  machine m;
  m.write(0, 640);
  for (int i = 0; i < 5; ++i) {
    for (unsigned p = 0; p < 4; ++p) m.read(p, 640);
  }
  CHECK(m.transfers == 3);
  for (unsigned p = 1; p < 4; ++p) CHECK(m.clocks[p] == transfer);  // at the same time
}

TEST_CASE("a write takes the line from all readers", "[unit]") {
  machine m;
  for (unsigned p = 0; p < 4; ++p) m.read(p, 640);
  CHECK(m.transfers == 3);
  m.write(0, 640);  // it has the line, but not alone
  CHECK(m.transfers == 4);
  m.write(0, 640);
  CHECK(m.transfers == 4);
  for (unsigned p = 1; p < 4; ++p) m.read(p, 640);
  CHECK(m.transfers == 7);
}

TEST_CASE("processors that want a line at once get it one after the other", "[unit]") {
  machine m;
  m.write(0, 640);
  for (unsigned p = 1; p < 4; ++p) m.write(p, 640);
  CHECK(m.clocks[1] == transfer);
  CHECK(m.clocks[2] == 2 * transfer);
  CHECK(m.clocks[3] == 3 * transfer);
}

TEST_CASE("lines keep their holders when the table grows", "[unit]") {
  machine m;
  for (std::uintptr_t line = 0; line < 100'000; ++line) m.write(line % 2, 64 * line);
  CHECK(m.transfers == 0);
  CHECK(m.lines.lines() == 100'000);
  for (std::uintptr_t line = 0; line < 100'000; ++line) m.read(line % 2, 64 * line);
  CHECK(m.transfers == 0);
  for (std::uintptr_t line = 0; line < 100'000; ++line) m.read(2, 64 * line);
  CHECK(m.transfers == 100'000);
}

}  // namespace unit_cache_lines
