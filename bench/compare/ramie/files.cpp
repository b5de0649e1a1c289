// SPDX-License-Identifier: BSL-1.0
// Reading a file at random places, so many fibers at once.
#include <compare/ramie/ramie.hpp>
#include <compare/reads.hpp>

namespace compare {

result file_reads(unsigned workers, const sizes& s) {
  const long depth = s["depth"], each = s["count"] / depth, blocks = s["bytes"] / read_size;
  return ramie::run(with(workers), [=]() -> result {
    auto file = ramie::file::open(file_to_read());
    const auto start = stopwatch::now();
    {
      ramie::nursery n;
      for (long d = 0; d < depth; ++d) {
        n.spawn([&file, d, each, blocks] {
          alignas(64) std::byte data[read_size];
          places_to_read where(d, blocks);
          for (long i = 0; i < each; ++i) {
            require(file.read_at(data, static_cast<std::uint64_t>(where.next())) == read_size, "a short read");
          }
        });
      }
      n.join();
    }
    return {ns_each(depth * each, start), "ns"};
  });
}

}  // namespace compare
