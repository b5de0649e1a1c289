// SPDX-License-Identifier: BSL-1.0
// Random programs at the two ends of a duplex: fibers and threads that write and read, some of which are cancelled or
// too late, and an end that is shut when all have written. What holds, whatever the schedule:
//
//   - what a call reports as transferred was transferred, and what it does not was not;
//   - each writer's bytes arrive in the order it wrote them: a byte says who wrote it and which of its bytes it is;
//   - after the end of the stream nothing is missing.
//
// A lost wake is a hang: the watchdog names the seed.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/findings.hpp>
#include <support/seeds.hpp>
#include <support/streams.hpp>
#include <support/test.hpp>

namespace stress_duplex_programs {

using namespace std::chrono_literals;

test::random_test this_test("programs at a duplex");

constexpr unsigned writers = 4, numbers = 256 / writers;

// One direction, and the books of it.
struct direction {
  ramie::duplex_end& from;
  ramie::duplex_end& to;
  std::atomic<long> read{0};
  std::array<std::atomic<long>, writers> written{};
};

// The bytes of one writer are numbered, round and round.
std::string next_bytes(unsigned who, long written, unsigned count) {
  std::string bytes(count, 0);
  for (char& b : bytes) b = static_cast<char>(who * numbers + static_cast<unsigned long>(written++) % numbers);
  return bytes;
}

// So many calls, or as long as it is let.
void write_some(direction& d, unsigned who, std::uint64_t seed, int calls) {
  test::dice dice(seed);
  for (int i = 0; i < calls; ++i) {
    const auto bytes = next_bytes(who, d.written[who].load(), 1 + dice.below(20));
    const auto until =
        dice.one_in(4) ? ramie::deadline(std::chrono::microseconds(dice.below(50))) : ramie::deadline();
    std::error_code ec;
    d.written[who] += static_cast<long>(d.from.write_some(ramie::bytes_of(bytes), ec, until));
    if (ec && ec != std::errc::timed_out) return;
  }
}

// Puts the stream together, call by call: only one reads at a time, so that the order is known.
class assembler {
 public:
  assembler(direction& d, test::findings& found) : d_(d), found_(found) {}
  // False: the end.
  bool read(test::dice& dice) {
    std::string into(1 + dice.below(30), 0);
    const auto until =
        dice.one_in(4) ? ramie::deadline(std::chrono::microseconds(dice.below(50))) : ramie::deadline();
    std::error_code ec;
    const std::size_t n = d_.to.read_some(test::writable(into), ec, until);
    if (ec) EXPECT(found_, ec == std::errc::timed_out);
    for (const char c : into.substr(0, n)) check(static_cast<unsigned char>(c));
    d_.read += static_cast<long>(n);
    return n != 0 || ec;
  }

 private:
  void check(unsigned byte) {
    const unsigned who = byte / numbers;
    EXPECT(found_, byte % numbers == static_cast<unsigned long>(seen_[who]++) % numbers);
  }
  direction& d_;
  test::findings& found_;
  std::array<long, writers> seen_{};
};

// Readers that come and go, cancelled after a while; then one that reads to the end.
void read_all(direction& d, std::uint64_t seed, test::findings& found) {
  test::dice dice(seed);
  assembler in(d, found);
  for (int i = 0; i < 5; ++i) {
    ramie::nursery n;
    n.spawn([&in, own = test::dice(dice())]() mutable {
      while (in.read(own)) {
      }
    });
    for (unsigned k = dice.below(8); k > 0; --k) ramie::yield();
    n.cancel();
    n.join();
  }
  while (in.read(dice)) {
  }
}

// Two writers stay, one is a thread, one is replaced again and again, cancelled wherever it is.
void write_all(direction& d, std::uint64_t seed, int calls) {
  std::thread outside([&] { write_some(d, 0, seed, calls); });
  ramie::nursery n;
  n.spawn([&] { write_some(d, 1, seed + 1, calls); });
  n.spawn([&] { write_some(d, 2, seed + 2, calls); });
  test::dice dice(seed + 3);
  for (int i = 0; i < 5; ++i) {
    ramie::nursery goes;
    goes.spawn([&d, own = dice()] { write_some(d, 3, own, 1'000'000); });
    for (unsigned k = dice.below(8); k > 0; --k) ramie::yield();
    goes.cancel();
    goes.join();
  }
  n.join();
  ramie::blocking([&] { outside.join(); });
  d.from.shutdown(ramie::shutdown_part::write);
}

void run_program(const test::setting& s, test::findings& found) {
  test::dice dice(s.seed);
  const int calls = test::scaled(100, 30);
  auto ends = ramie::make_duplex({.capacity = 1 + dice.below(40), .short_seed = dice.one_in(2) ? s.seed : 0});
  direction there{ends.first, ends.second, {}, {}}, back{ends.second, ends.first, {}, {}};
  ramie::nursery n;
  for (direction* d : {&there, &back}) {
    n.spawn([d, seed = dice(), calls] { write_all(*d, seed, calls); });
    n.spawn([d, seed = dice(), &found] { read_all(*d, seed, found); });
  }
  n.join();
  for (direction* d : {&there, &back}) {
    long written = 0;
    for (const auto& each : d->written) written += each.load();
    EXPECT(found, d->read == written, written >= 3 * calls / 2, d->to.available() == 0);
  }
}

TEST_CASE("random programs at a duplex: every byte arrives once, in order, whoever leaves",
          "[stress][streams][duplex]") {
  this_test.for_each_seed(test::scaled(10, 2), 400, [](const test::setting& s) {
    INFO(s);
    test::findings found;
    ramie::run(s.options(), [&] { run_program(s, found); });
    CHECK(found.wrong() == "");
  });
}

}  // namespace stress_duplex_programs
