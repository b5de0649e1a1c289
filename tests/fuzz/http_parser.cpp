// SPDX-License-Identifier: BSL-1.0
// libFuzzer's target for the HTTP leaves: tools/fuzz http.
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "http_oracle.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string wrong = test::http_oracle::wrong({reinterpret_cast<const char*>(data), size});
  if (!wrong.empty()) {
    std::fprintf(stderr, "does not hold: %s\n", wrong.c_str());
    std::abort();
  }
  return 0;
}
