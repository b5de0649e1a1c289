// SPDX-License-Identifier: BSL-1.0
// Joins within joins: trees, and nests as deep as there is memory.
#include <csignal>
#include <string>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_joining_deep {

using ramie::nursery;
using test::with_workers;

long fib(int n) {
  if (n < 2) return n;
  long half = 0;
  nursery scope;
  scope.spawn([&half, n] { half = fib(n - 1); });
  const long other = fib(n - 2);
  scope.join();
  return half + other;
}

TEST_CASE("a nursery at every level", "[conformance][nursery][join]") {
  const int n = test::scaled(22, 14);
  const long expected = test::scaled(17'711, 377);
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    long result = 0;
    ramie::run(with_workers(workers), [&] { result = fib(n); });
    CHECK(result == expected);
  }
  auto o = with_workers(4);
  o.chaos = ramie::chaos_mode{1};
  long result = 0;
  ramie::run(o, [&] { result = fib(10); });
  CHECK(result == 55);
}

// Each level is a child of the one above.
void nest(long depth, std::atomic<long>& reached) {
  reached.fetch_add(1, std::memory_order_relaxed);
  if (depth == 0) return;
  nursery n;
  n.spawn([depth, &reached] { nest(depth - 1, reached); });
  n.join();
}

TEST_CASE("nurseries nest as deep as there is memory", "[conformance][nursery][join]") {
  const long depth = test::large() ? 1'000'000 : test::scaled(100'000, 300);
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<long> reached{0};
    ramie::run(with_workers(workers), [&] { nest(depth, reached); });
    CHECK(reached.load() == depth + 1);
  }
}

TEST_CASE("a failure at the bottom of a deep nest comes up to the top", "[conformance][nursery][join]") {
  const int depth = test::scaled(5'000, 100);
  std::string text;
  std::function<void(int)> fall = [&](int left) {
    nursery n;
    n.spawn([&, left] {
      if (left == 0) throw std::runtime_error("bottom");
      fall(left - 1);
    });
    n.join();
  };
  try {
    ramie::run(with_workers(2), [&] { fall(depth); });
  } catch (const std::runtime_error& e) {
    text = e.what();
  }
  CHECK(text == "bottom");
}

// The owner itself recurses, on its own stack: that is a stack overflow like any other, and is told as one.
void nest_in_one_fiber(long depth) {
  nursery n;
  n.spawn([] {});
  if (depth != 0) nest_in_one_fiber(depth - 1);
  n.join();
}

TEST_CASE("too deep a recursion of one fiber ends in a clear error", "[conformance][nursery][join][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    ramie::run(with_workers(1), [] {
      nursery n;
      n.spawn({.name = "digger"}, [] { nest_in_one_fiber(1'000'000); });
      n.join();
    });
  });
  INFO(end.errors);
  CHECK(end.signal == SIGSEGV);
  CHECK(end.errors.find("stack overflow in fiber #") != std::string::npos);
  CHECK(end.errors.find("'digger'") != std::string::npos);
}

TEST_CASE("children with stacks of other sizes run where they fit", "[conformance][nursery][join]") {
  for (const unsigned workers : {1u, 2u}) {
    std::atomic<int> ran{0};
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < 20; ++i) {
        n.spawn({.stack_size = i % 2 == 0 ? 16 * 1024u : 1024 * 1024u}, [&] {
          nursery inner;
          inner.spawn({.stack_size = 512 * 1024}, [&] { ran.fetch_add(1); });
          inner.spawn([&] {
            ramie::yield();
            ran.fetch_add(1);
          });
          inner.join();
        });
      }
      n.join();
    });
    CHECK(ran.load() == 40);
  }
}

}  // namespace conformance_nursery_joining_deep
