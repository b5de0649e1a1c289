// SPDX-License-Identifier: BSL-1.0
// What tells of cases that fail, and of those that hang. Cases that hang or die are for the test of those who watch over
// cases (tools/lib/cases.py --self-test). They are hidden: only their tag runs them.
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include <ramie/ramie.hpp>
#include "runtime/src/sched/registry.hpp"
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>
#include <support/watchdog.hpp>

namespace unit_watchdog {

int listed() {
  int count = 0;
  ramie::runtime_internal::for_each_scheduler([&](ramie::runtime_internal::scheduler&) { ++count; });
  return count;
}

TEST_CASE("a runtime is listed while it lives, for who looks at one that hangs", "[unit][runtime]") {
  const int before = listed();
  {
    std::optional<ramie::runtime> first(test::with_workers(1));
    ramie::runtime second(test::with_workers(1));
    CHECK(listed() == before + 2);
    first.reset();  // the older one
    CHECK(listed() == before + 1);
    first.emplace(test::with_workers(1));
    first.reset();  // the newer one
    CHECK(listed() == before + 1);
  }
  CHECK(listed() == before);
}

// What f finds wrong, without its place.
template <class F>
std::string told(F f) {
  test::findings found;
  f(found);
  const std::string all = found.wrong();
  const auto place = all.find(": ");
  return place == all.npos ? all : all.substr(place + 2);
}

TEST_CASE("what is found wrong in a fiber is told with its place, its text and its values", "[unit][support]") {
  test::findings found;
  const int three = 3;
  const std::optional<int> nothing;
  for (int i = 0; i < 2; ++i) EXPECT(found, three == 4 + i);
  CHECK(found.wrong().ends_with("unit/watchdog.cpp:" + std::to_string(__LINE__ - 1) +
                                ": three == 4 + i, where 3 == 4 (2 times); "));
  test::findings others;
  EXPECT(others, three == 3 && std::string("a") == "a", !nothing);
  EXPECT(others, nothing == nothing, std::optional(3) == std::optional(three), nothing != std::optional(3));
  CHECK(others.wrong() == "");
  EXPECT(others, nothing == three);
  CHECK(others.wrong().ends_with(": nothing == three, where nothing == 3; "));
  CHECK(told([&](auto& f) { EXPECT(f, three == 1 || three == 2); }) == "three == 1 || three == 2, where 3 == 1; ");
  const std::vector<std::string> words{"a", "b"};
  CHECK(told([&](auto& f) { EXPECT(f, words == (std::vector<std::string>{"a"})); }) ==
        "words == (std::vector<std::string>{\"a\"}), where {\"a\", \"b\"} == {\"a\"}; ");
  const auto late = make_error_code(std::errc::timed_out);
  CHECK(told([&](auto& f) { EXPECT(f, late == std::errc::io_error); }) ==
        "late == std::errc::io_error, where \"Connection timed out\" == \"Input/output error\"; ");
  test::findings plain;
  plain.expect(three > 3);
  CHECK(plain.wrong().ends_with(": plain.expect(three > 3);; "));
}

TEST_CASE("of several conditions the first that does not hold is told, and no other evaluated", "[unit][support]") {
  int looks = 0;
  const auto look = [&looks](char) { return ++looks; };
  CHECK(told([&](auto& f) { EXPECT(f, look(',') == 1, look('"') == 2, look('\'') < 4); }) == "");
  CHECK(looks == 3);
  CHECK(told([&](auto& f) { EXPECT(f, look(',') == 4, 1'000 != 1, look('"') == 6, look('\'') == 7); }) ==
        "look('\"') == 6, where 5 == 6; ");
  CHECK(looks == 5);
  CHECK(told([&](auto& f) { EXPECT(f, look(0) == 6, looks == 0, true); }) == "looks == 0, where 6 == 0; ");
  CHECK(told([&](auto& f) { EXPECT(f, looks == 6, looks != 6 || looks < 6, true); }) ==
        "looks != 6 || looks < 6, where 6 != 6; ");
  CHECK(told([&](auto& f) { EXPECT(f, looks == 6, !looks, true); }) == "!looks; ");
  CHECK(told([&](auto& f) { EXPECT(f, 1 == looks / 6, 2 > 1, 3 >= 3, 4 <= 4, 5 < 6, looks > 6); }) ==
        "looks > 6, where 6 > 6; ");
}

TEST_CASE("watched: passes before one that hangs", "[.watched]") {
  CHECK(true);
}

TEST_CASE("watched: a fiber waits for ever", "[.watched]") {
  CHECK(true);
  ramie::run([] {
    ramie::channel<int> never(0);
    ramie::nursery n;
    n.spawn([&] {
      ramie::this_fiber::set_name("the patient one");
      (void)never.recv();
    });
    n.join();
  });
}

TEST_CASE("watched: passes between those that do not", "[.watched]") {
  CHECK(true);
}

TEST_CASE("watched: dies", "[.watched]") {
  std::_Exit(5);
}

// Catch2's handler notes it as failed before the process is gone.
TEST_CASE("watched: aborts", "[.watched]") {
  std::abort();
}

TEST_CASE("watched: \"fails\", as cases do", "[.watched]") {
  CHECK(1 == 2);
}

// Longer than the self-test is patient, but with signs of life.
TEST_CASE("watched: goes on for long", "[.watched]") {
  test::watchdog dog([] {});
  const auto over = std::chrono::steady_clock::now() + std::chrono::seconds(9);
  while (std::chrono::steady_clock::now() < over) (void)dog.step();
}

TEST_CASE("watched: a child hangs", "[.watched]") {
  const auto end = test::in_child([] { ramie::run([] { ramie::event().wait(); }); });
  CHECK(end.exit_code == test::exit_of_hung);
  CHECK(end.errors.find("event") != std::string::npos);
}

}  // namespace unit_watchdog
