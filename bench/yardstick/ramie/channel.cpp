// SPDX-License-Identifier: BSL-1.0
// channel [THREADS]: ten million numbers through one channel, with half as many producers, and as many consumers, as there
// are threads.
#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

constexpr std::size_t elements = 10'000'000, capacity = 1024;

void pass_all(std::size_t producers, std::size_t consumers) {
  ramie::channel<std::size_t> c(capacity);
  std::vector<std::size_t> counts(consumers), sums(consumers);
  ramie::nursery receiving;
  for (std::size_t i = 0; i < consumers; ++i) {
    receiving.spawn([&, i] {
      std::size_t count = 0, sum = 0;
      for (const std::size_t each : c) {
        ++count;
        sum += each;
      }
      counts[i] = count;
      sums[i] = sum;
    });
  }
  ramie::nursery sending;
  for (std::size_t i = 0; i < producers; ++i) {
    sending.spawn([&c, i, producers] {
      for (std::size_t e = elements * i / producers; e < elements * (i + 1) / producers; ++e) c.send(e);
    });
  }
  sending.join();
  c.close();
  receiving.join();
  std::size_t count = 0, sum = 0;
  for (std::size_t i = 0; i < consumers; ++i) {
    count += counts[i];
    sum += sums[i];
  }
  yardstick::require(count == elements && sum == elements / 2 * (elements - 1), "channel");
}

}  // namespace

int main(int argc, char** argv) {
  ramie::options o;
  o.workers = static_cast<unsigned>(yardstick::argument(argc, argv, 1, yardstick::default_threads()));
  const std::size_t each = argc > 1 ? std::max(1u, o.workers / 2) : 4;
  std::printf("threads: %u\nproducers: %zu\nconsumers: %zu\n", o.workers, each, each);
  return ramie::run(o, [each] {
    pass_all(each, each);
    const auto start = yardstick::clock::now();
    pass_all(each, each);
    yardstick::report(yardstick::microseconds_since(start), "iteration_count", 1, "elements", elements);
    return 0;
  });
}
