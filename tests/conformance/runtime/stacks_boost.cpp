// SPDX-License-Identifier: BSL-1.0
// ramie and Boost.Context: its allocators under our runtime, our stacks under its fibers.
#include <atomic>
#include <boost/context/fiber.hpp>
#include <boost/context/fixedsize_stack.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <csignal>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <ramie/stack_allocator.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/readable.hpp>
#include <support/test.hpp>

namespace conformance_stacks_boost {

namespace context = boost::context;
using ramie::nursery;
using ramie::stack_allocator;
using test::with_workers;

constexpr std::size_t kib = 1024;

static_assert(std::is_same_v<stack_allocator::traits_type, context::stack_traits>);
static_assert(ramie::runtime_internal::stack_allocator_like<stack_allocator>);  // it could back a runtime, too

int squares(const ramie::options& o) {
  return ramie::run(o, [] {
    ramie::channel<int> numbers(0);
    nursery n;
    n.spawn([=] {
      nursery inner;
      for (int i = 1; i <= 20; ++i) {
        inner.spawn([=] {
          ramie::yield();
          numbers.send(i * i);
        });
      }
      inner.join();
      numbers.close();
    });
    auto sum = n.spawn([=] {
      int s = 0;
      for (int v : numbers) s += v;
      return s;
    });
    n.join();
    return sum.get();
  });
}

// K30
TEMPLATE_TEST_CASE("Boost's allocators have the stacks of a runtime", "[conformance][stacks][boost]",
                   context::fixedsize_stack, context::pooled_fixedsize_stack, context::protected_fixedsize_stack,
                   stack_allocator) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    auto o = with_workers(workers);
    o.stacks = ramie::stack_source(TestType(160 * kib));
    CHECK(squares(o) == 2870);
    o.stacks = ramie::stack_source::of_any_size([](std::size_t bytes) { return TestType(bytes); });
    CHECK(squares(o) == 2870);
  }
}

// K34
TEST_CASE("a stack allocator has guarded stacks of at least what was asked for", "[conformance][stacks][boost]") {
  for (const std::size_t bytes : {16 * kib, 16 * kib + 1, 32 * kib, 64 * kib, 100 * kib, 1024 * kib}) {
    stack_allocator from(bytes);
    std::vector<context::stack_context> taken;
    for (int i = 0; i < 10; ++i) {
      taken.push_back(from.allocate());
      auto* const low = static_cast<char*>(taken.back().sp) - taken.back().size;
      CHECK(taken.back().size >= bytes);
      CHECK(reinterpret_cast<std::uintptr_t>(taken.back().sp) % 16 == 0);
      CHECK(test::readable(low));
      CHECK_FALSE(test::readable(low - 1));
    }
    stack_allocator another(bytes);
    for (auto& each : taken) another.deallocate(each);
    auto again = from.allocate();
    CHECK(again.sp == taken.back().sp);  // the warm one
    from.deallocate(again);
  }
}

// K34
TEST_CASE("a stack allocator of an impossible size is refused", "[conformance][stacks][boost][misuse]") {
  CHECK_THROWS_AS(stack_allocator(4 * kib), ramie::usage_error);
  CHECK_THROWS_AS(stack_allocator(std::size_t{2} << 30), ramie::usage_error);
}

// K34
TEST_CASE("a stack allocator without memory throws std::bad_alloc, and works again", "[conformance][stacks][boost]") {
  using ramie::platform::fault;
  namespace faults = ramie::platform::faults;
  stack_allocator from(64 * 1024 * kib);  // a size that nobody else uses
  faults::plan_for(fault::stack_mapping, 1, faults::for_good);
  CHECK_THROWS_AS(from.allocate(), std::bad_alloc);
  faults::plan_for(fault::stack_mapping, 0, 0);
  auto one = from.allocate();
  CHECK(one.sp != nullptr);
  from.deallocate(one);
}

// Counts up to `last`, a number each time it is resumed.
context::fiber counter(int last, int& now) {
  return context::fiber(std::allocator_arg, stack_allocator(), [last, &now](context::fiber&& back) {
    for (int i = 1; i <= last; ++i) {
      now = i;
      back = std::move(back).resume();
    }
    return std::move(back);
  });
}

// K34
TEST_CASE("a boost::context::fiber runs on ramie's stack, with a runtime or without", "[conformance][stacks][boost]") {
  const auto count = [] {
    int now = 0, sum = 0;
    context::fiber f = counter(10, now);
    while ((f = std::move(f).resume())) sum += now;
    return sum;
  };
  CHECK(count() == 55);
  int in_thread = 0, in_fiber = 0;
  std::thread([&] { in_thread = count(); }).join();
  CHECK(in_thread == 55);
  ramie::run(with_workers(2), [&] { in_fiber = count(); });
  CHECK(in_fiber == 55);
}

// K34
TEST_CASE("a boost::context::fiber on ramie's stack may end on any thread, after any runtime",
          "[conformance][stacks][boost]") {
  int now = 0;
  context::fiber f;
  ramie::run(with_workers(1), [&] { f = counter(3, now).resume(); });
  CHECK(now == 1);
  std::thread([&] { f = std::move(f).resume(); }).join();
  CHECK(now == 2);
  f = std::move(f).resume();
  CHECK(now == 3);
  std::thread([&] { f = std::move(f).resume(); }).join();
  CHECK_FALSE(f);
}

// K34
TEST_CASE("a boost::context::fiber that is dropped unwinds on ramie's stack", "[conformance][stacks][boost]") {
  if (test::sanitized) LEFT_OUT("sanitizers are not told of Boost's switches, and this one throws across one");
  auto alive = std::make_shared<int>(1);
  {
    context::fiber f(std::allocator_arg, stack_allocator(), [held = alive](context::fiber&& back) {
      const auto copy = held;
      back = std::move(back).resume();
      return std::move(back);
    });
    f = std::move(f).resume();
    CHECK(alive.use_count() == 3);
  }
  CHECK(alive.use_count() == 1);
}

// K34, J7. What waits inside a boost::context::fiber is the ramie fiber that resumed it.
TEST_CASE("a fiber may wait inside a boost::context::fiber that it has resumed", "[conformance][stacks][boost]") {
  if (test::sanitized) LEFT_OUT("sanitizers are not told of Boost's switches");
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::vector<int> got;
    ramie::run(with_workers(workers), [&] {
      ramie::channel<int> numbers(0);
      nursery n;
      n.spawn([=] {
        for (int i = 1; i <= 20; ++i) numbers.send(i);
        numbers.close();
      });
      int doubled = 0;
      context::fiber generator(std::allocator_arg, stack_allocator(), [&](context::fiber&& back) {
        for (int v : numbers) {
          ramie::yield();
          doubled = 2 * v;
          back = std::move(back).resume();
        }
        return std::move(back);
      });
      while ((generator = std::move(generator).resume())) got.push_back(doubled);
      n.join();
    });
    REQUIRE(got.size() == 20);
    CHECK(got.front() == 2);
    CHECK(got.back() == 40);
  }
}

// J7
TEST_CASE("a join on a stack that is not the fiber's calls nobody there", "[conformance][stacks][boost][join]") {
  if (test::sanitized) LEFT_OUT("sanitizers are not told of Boost's switches");
  std::atomic<int> ran{0}, above{0};
  ramie::run(with_workers(1), [&] {
    // Its stack has room for no child, whose promise is 64 KiB.
    context::fiber small(std::allocator_arg, stack_allocator(16 * kib), [&](context::fiber&& back) {
      const auto* const joiner = static_cast<const char*>(__builtin_frame_address(0));
      nursery n;
      for (int i = 0; i < 5; ++i) {
        n.spawn([&] {
          const auto* const child = static_cast<const char*>(__builtin_frame_address(0));
          above += child < joiner && joiner - child < 16 * 1024;
          volatile char frame[40 * kib];
          for (std::size_t at = 0; at < sizeof frame; at += kib) frame[at] = 1;
          ran += frame[0];
        });
      }
      n.join();
      return std::move(back);
    });
    small = std::move(small).resume();
  });
  CHECK(ran.load() == 5);
  CHECK(above.load() == 0);
}

[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512] = {};
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[0];
}

// K15, K34
TEST_CASE("an overflow of a stack allocator's stack is told as such", "[conformance][stacks][boost][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    ramie::run(with_workers(1), [] {
      context::fiber f(std::allocator_arg, stack_allocator(32 * kib), [](context::fiber&& back) {
        std::printf("%d", recurse(1'000'000));
        return std::move(back);
      });
      f = std::move(f).resume();
    });
  });
  INFO(end.errors);
  CHECK(end.signal == SIGSEGV);
  CHECK(end.errors.find("stack overflow on a stack of ramie::stack_allocator") != std::string::npos);
}

}  // namespace conformance_stacks_boost
