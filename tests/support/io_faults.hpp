// SPDX-License-Identifier: BSL-1.0
// RAMIE_TEST_IO_FAULTS=seed enables all kinds of io_fault (platform/faults.hpp) but short transfers for the whole
// program, RAMIE_TEST_IO_SHORT_TRANSFERS=seed also those. `tools/test io-faults` runs the tests that must pass all the
// same.
#pragma once

#include <cstdlib>

#include <ramie/platform/faults.hpp>

namespace test {

// Whether any are enabled.
inline bool plan_io_faults_of_environment() {
  namespace faults = ramie::platform::faults;
  const char* const seed = std::getenv("RAMIE_TEST_IO_FAULTS");
  const char* const seed_with_short = std::getenv("RAMIE_TEST_IO_SHORT_TRANSFERS");
  if (seed == nullptr && seed_with_short == nullptr) return false;
  const auto bit = [](ramie::platform::io_fault which) { return 1u << static_cast<unsigned>(which); };
  const auto exact = bit(ramie::platform::io_fault::again) | bit(ramie::platform::io_fault::order) |
                     bit(ramie::platform::io_fault::small_queues);
  const auto all = exact | bit(ramie::platform::io_fault::short_count);
  faults::plan_io_faults(seed_with_short != nullptr ? all : exact,
                         std::strtoull(seed_with_short != nullptr ? seed_with_short : seed, nullptr, 10));
  return true;
}

}  // namespace test
