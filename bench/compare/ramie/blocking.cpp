// SPDX-License-Identifier: BSL-1.0
// Work that may block, on a thread of its own.
#include <ramie/blocking.hpp>

#include <compare/ramie/ramie.hpp>

namespace compare {

result blocking_call(unsigned workers, const sizes& s) {
  const long rounds = s["rounds"];
  return ramie::run(with(workers), [=]() -> result {
    const auto calls = [](long count) {
      for (long i = 0; i < count; ++i) require(ramie::blocking([i] { return i; }) == i, "blocking");
    };
    calls(100);
    const auto start = stopwatch::now();
    calls(rounds);
    return {ns_each(rounds, start) / 1e3, "us"};
  });
}

}  // namespace compare
