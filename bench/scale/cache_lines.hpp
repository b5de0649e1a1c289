// SPDX-License-Identifier: BSL-1.0
// Which virtual processor has which cache line, and what an access costs. Addresses are only numbers here.
//
// A line is in no cache, exclusively in one, or shared by some (MESI, with caches that lose nothing):
//
//   read     it is in the reader's cache: a hit. In another's only: a transfer, and it is shared from then on
//   write    the writer has it exclusively: a hit. Else a transfer, which takes it from all others
//   first    access of all: the reader or writer has it exclusively. Not a transfer: nobody else had it
//
// A line that is being taken exclusively is on its way for the time of a transfer, and who wants it next waits: so many
// processors that write one line get it one after the other. Readers of one line do not wait for each other.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace scale {

// Times are picoseconds: whole numbers, so that sums are the same everywhere.
using picoseconds = std::int64_t;

class cache_lines {
 public:
  static constexpr unsigned most_processors = 192;
  static constexpr unsigned line_bytes = 64;

  explicit cache_lines(picoseconds transfer) : transfer_(transfer), table_(initial_size) {}

  struct outcome {
    picoseconds ready;  // when the processor has the line
    bool transferred;   // from another processor, or from some
  };
  outcome access(unsigned processor, std::uintptr_t address, bool writes, picoseconds now) noexcept {
    line& l = line_of(address / line_bytes + 1);
    if (l.owner == static_cast<int>(processor)) return {now, false};
    if (l.owner == nobody) {
      l.owner = static_cast<int>(processor);
      l.sharers = {};
      add(l, processor);
      return {now, false};
    }
    if (!writes && has(l, processor)) return {now, false};
    const picoseconds start = now > l.free_at ? now : l.free_at;
    const picoseconds ready = start + transfer_;
    if (writes) {
      l.sharers = {};
      l.owner = static_cast<int>(processor);
      l.free_at = ready;
    } else {
      l.owner = shared;
    }
    add(l, processor);
    return {ready, true};
  }

  [[nodiscard]] std::size_t lines() const noexcept { return used_; }

 private:
  static constexpr int nobody = -1, shared = -2;
  static constexpr std::size_t initial_size = std::size_t{1} << 16;  // a power of two
  struct line {
    std::uintptr_t number = 0;  // 0: none
    picoseconds free_at = 0;    // the last transfer to a writer has ended
    std::array<std::uint64_t, most_processors / 64> sharers{};
    int owner = nobody;
  };

  static bool has(const line& l, unsigned processor) noexcept {
    return (l.sharers[processor / 64] >> (processor % 64) & 1) != 0;
  }
  static void add(line& l, unsigned processor) noexcept {
    l.sharers[processor / 64] |= std::uint64_t{1} << (processor % 64);
  }
  [[nodiscard]] std::size_t place(std::uintptr_t number) const noexcept {
    auto at = static_cast<std::size_t>(number * 0x9e3779b97f4a7c15u >> 20) & (table_.size() - 1);
    while (table_[at].number != 0 && table_[at].number != number) at = (at + 1) & (table_.size() - 1);
    return at;
  }
  line& line_of(std::uintptr_t number) noexcept {
    auto at = place(number);
    if (table_[at].number == number) return table_[at];
    if (2 * ++used_ > table_.size()) {
      std::vector<line> old(2 * table_.size());
      old.swap(table_);
      for (const line& l : old) {
        if (l.number != 0) table_[place(l.number)] = l;
      }
      at = place(number);
    }
    table_[at].number = number;
    return table_[at];
  }

  picoseconds transfer_;
  std::vector<line> table_;
  std::size_t used_ = 0;
};

}  // namespace scale
