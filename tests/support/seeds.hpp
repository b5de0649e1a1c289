// SPDX-License-Identifier: BSL-1.0
// Which random programs a test runs: seeds, each with 1, 2, 4 and 8 workers, without and with chaos.
//
//   RAMIE_STRESS_SEED=n          that seed alone
//   RAMIE_STRESS_MINUTES=m       new seeds for m minutes in all; the random tests of the executable share the time:
//                                each has an equal part of what is left when its turn comes
//   RAMIE_STRESS_FIRST_SEED=n    the first one, if it is not 1
//
// Otherwise a fixed number of seeds, small or large. Time only says when to stop: a program is what its seed says.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <optional>
#include <ostream>

#include <ramie/options.hpp>
#include <support/random.hpp>
#include <support/test.hpp>
#include <support/watchdog.hpp>

namespace test {

struct setting {
  std::uint64_t seed = 1;
  unsigned workers = 1;
  bool chaos = false;

  [[nodiscard]] ramie::options options() const {
    ramie::options o;
    o.workers = workers;
    if (chaos) o.chaos = ramie::chaos_mode{seed};
    return o;
  }
  friend std::ostream& operator<<(std::ostream& out, const setting& s) {
    return out << "RAMIE_STRESS_SEED=" << s.seed << ", " << s.workers << " workers" << (s.chaos ? ", chaos" : "");
  }
};

// One per test case, static: so each knows how many share the time.
class random_test {
 public:
  explicit random_test(const char* name) : name_(name) { ++yet_to_run; }

  // body(setting). `small` and `large` count seeds.
  template <class Body>
  void for_each_seed(int small, int large, Body body) {
    watchdog dog([&] { std::cerr << "  it was running " << name_ << ", " << present_ << std::endl; });
    const auto alone = number_in("RAMIE_STRESS_SEED");
    const auto minutes = number_in("RAMIE_STRESS_MINUTES");
    const std::uint64_t first = alone.value_or(number_in("RAMIE_STRESS_FIRST_SEED").value_or(1));
    if (!alone && minutes) return for_minutes(*minutes, first, dog, body);
    const int count = alone ? 1 : large_or(small, large);
    for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(count); ++seed) {
      (void)each_setting(seed, dog, body, [](const setting&) { return true; });
    }
  }
  [[nodiscard]] std::uint64_t programs() const { return programs_; }

 private:
  using clock = std::chrono::steady_clock;

  static std::optional<std::uint64_t> number_in(const char* variable) {
    const char* const text = std::getenv(variable);
    if (text == nullptr || *text == 0) return std::nullopt;
    return std::strtoull(text, nullptr, 10);
  }
  static int large_or(int small, int large_count) { return test::large() ? large_count : small; }

  template <class Body, class GoOn>
  bool each_setting(std::uint64_t seed, watchdog& dog, Body& body, GoOn go_on) {
    for (const unsigned workers : {1u, 2u, 4u, 8u}) {
      for (const bool chaos : {false, true}) {
        const setting s{seed, workers, chaos};
        if (!go_on(s)) return false;
        present_ = s;
        dog.step();
        body(s);
        ++programs_;
      }
    }
    return true;
  }

  // The same for all of them: the first one asks first.
  static clock::time_point end_of_all(std::uint64_t minutes) {
    static const auto over = clock::now() + std::chrono::minutes(minutes);
    return over;
  }

  template <class Body>
  void for_minutes(std::uint64_t minutes, std::uint64_t first, watchdog& dog, Body& body) {
    const auto over = end_of_all(minutes);
    const auto start = clock::now();
    const auto mine = start + (over - start) / (yet_to_run > 1 ? yet_to_run : 1);
    --yet_to_run;
    auto next_line = start + std::chrono::seconds(30);
    const auto go_on = [&](const setting& s) {
      const auto now = clock::now();
      if (now >= next_line) {
        const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(now - start).count();
        std::printf("%s: %llu programs in %lld s, at seed %llu\n", name_, static_cast<unsigned long long>(programs_),
                    static_cast<long long>(seconds), static_cast<unsigned long long>(s.seed));
        std::fflush(stdout);
        next_line += std::chrono::seconds(30);
      }
      return now < mine;
    };
    std::uint64_t seed = first;
    while (each_setting(seed, dog, body, go_on)) ++seed;
    std::printf("%s: %llu programs, seeds %llu to %llu\n", name_, static_cast<unsigned long long>(programs_),
                static_cast<unsigned long long>(first), static_cast<unsigned long long>(seed));
    std::fflush(stdout);
  }

  static inline int yet_to_run = 0;
  const char* const name_;
  std::uint64_t programs_ = 0;
  setting present_{};
};

}  // namespace test
