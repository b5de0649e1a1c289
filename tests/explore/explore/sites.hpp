// SPDX-License-Identifier: BSL-1.0
// Where in the source which memory orders are used, and what becomes of the program if one of them is weaker.
#pragma once

#include <atomic>
#include <cstdint>
#include <source_location>
#include <string>
#include <vector>

namespace explore {

// A fence is weakened to none; a compare-exchange has two sites, of its success and of its failure.
enum class access_kind : std::uint8_t { load, store, both, fence };

struct order_site {
  std::string file;      // without its folders
  std::string function;  // without its scope and parameters
  unsigned line = 0, column = 0;
  access_kind kind = access_kind::load;
  std::memory_order order = std::memory_order_relaxed;
  unsigned ordinal = 1;  // among those of its kind and order in the function

  [[nodiscard]] std::string name() const;  // without the line: "deque.hpp steal load acquire 2"
  // Every order it could have instead that is weaker, the weakest first.
  [[nodiscard]] std::vector<std::memory_order> weaker() const;
};
[[nodiscard]] const char* name_of(std::memory_order order) noexcept;

// The order with which the operation is performed: the one asked for, unless this site is weakened.
[[nodiscard]] std::memory_order order_at(const std::source_location& at, access_kind kind,
                                         std::memory_order asked) noexcept;

// The sites that runs have come by since the last call, but for the tests' own atomics.
void collect_sites(bool on) noexcept;
[[nodiscard]] std::vector<order_site> take_sites();
// Until the next call.
void weaken(const order_site* site, std::memory_order to) noexcept;

}  // namespace explore
