// SPDX-License-Identifier: BSL-1.0
// What tells of cases that fail, and of those that hang. Cases that hang or die are for the test of those who watch over
// cases (tools/lib/cases.py --self-test). They are hidden: only their tag runs them.
#include <chrono>
#include <cstdlib>
#include <optional>
#include <string>

#include <ramie/ramie.hpp>
#include <sched/registry.hpp>
#include <support/child.hpp>
#include <support/crew.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>
#include <support/watchdog.hpp>

namespace unit_watchdog {

int listed() {
  int count = 0;
  ramie::detail::for_each_scheduler([&](ramie::detail::scheduler&) { ++count; });
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

TEST_CASE("what is found wrong in a fiber is told with its place, its text and its values", "[unit][support]") {
  test::findings found;
  const int three = 3;
  const std::optional<int> nothing;
  for (int i = 0; i < 2; ++i) EXPECT(found, three == 4 + i);
  CHECK(found.wrong().ends_with("unit/watchdog.cpp:" + std::to_string(__LINE__ - 1) +
                                ": three == 4 + i, where 3 == 4 (2 times); "));
  test::findings others;
  EXPECT(others, three == 3 && std::string("a") == "a" && !nothing);
  CHECK(others.wrong() == "");
  EXPECT(others, nothing == three);
  CHECK(others.wrong().ends_with(": nothing == three, where nothing == 3; "));
  test::findings plain;
  plain.expect(three > 3);
  CHECK(plain.wrong().ends_with(": plain.expect(three > 3);; "));
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
  const auto over = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < over) (void)dog.step();
}

TEST_CASE("watched: a child hangs", "[.watched]") {
  const auto end = test::in_child([] { ramie::run([] { ramie::event().wait(); }); });
  CHECK(end.exit_code == test::exit_of_hung);
  CHECK(end.errors.find("event") != std::string::npos);
}

}  // namespace unit_watchdog
