// SPDX-License-Identifier: BSL-1.0
// RAMIE_TEST_IO_WHIMS=seed makes input and output capricious for the whole program, RAMIE_TEST_IO_SHORT=seed also lets
// streams transfer less than they could: tools/test runs what must not care again with them.
#pragma once

#include <cstdlib>

#include <ramie/platform/faults.hpp>

namespace test {

// True: there are some.
inline bool follow_whims_of_the_environment() {
  namespace faults = ramie::platform::faults;
  const char* const whims = std::getenv("RAMIE_TEST_IO_WHIMS");
  const char* const also_short = std::getenv("RAMIE_TEST_IO_SHORT");
  if (whims == nullptr && also_short == nullptr) return false;
  const auto bit = [](ramie::platform::io_whim which) { return 1u << static_cast<unsigned>(which); };
  const auto exact = bit(ramie::platform::io_whim::again) | bit(ramie::platform::io_whim::order) |
                     bit(ramie::platform::io_whim::small_queues);
  const auto all = exact | bit(ramie::platform::io_whim::short_count);
  faults::plan_whims(also_short != nullptr ? all : exact,
                     std::strtoull(also_short != nullptr ? also_short : whims, nullptr, 10));
  return true;
}

}  // namespace test
