// SPDX-License-Identifier: BSL-1.0
// Runtimes on stacks of somebody else's allocator: options.stacks.
#include <csignal>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/counted_stacks.hpp>
#include <support/test.hpp>

namespace conformance_stacks_supplied {

using ramie::nursery;
using ramie::stack_source;
using test::fiber_group;
using test::counted_stacks;
using test::with_workers;
using test::runtime_internal::gate;

constexpr std::size_t kib = 1024;
constexpr std::size_t least = 72 * kib;    // for a promise of 64 KiB
constexpr std::size_t roomy = 160 * kib;

[[gnu::noinline]] const void* here() {
  return __builtin_frame_address(0);
}

ramie::options on(stack_source stacks, unsigned workers) {
  auto o = with_workers(workers);
  o.stacks = std::move(stacks);
  return o;
}
ramie::options on(counted_stacks& book, std::size_t bytes, unsigned workers) {
  return on(stack_source(counted_stacks::allocator(book, bytes)), workers);
}

void check_all_back(counted_stacks& book) {
  CHECK(book.allocated() > 1);
  CHECK(book.live() == 0);
  CHECK(book.strange() == 0);
  CHECK(book.overlaps() == 0);
}

// K30
TEST_CASE("fibers run on the stacks of the user's allocator", "[conformance][stacks][source]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    counted_stacks book;
    std::atomic<int> there{0}, elsewhere{0};
    bool root_there = true;
    {
      ramie::runtime rt(on(book, roomy, workers));
      rt.run([&] {
        root_there = book.holds(here());
        nursery n;
        for (int i = 0; i < 50; ++i) {
          n.spawn([&] {
            ramie::yield();
            ++(book.holds(here()) ? there : elsewhere);
            ramie::yield();
          });
        }
        ramie::yield();
        n.join();
      });
    }
    // Those that the join called run above the root, which is large.
    CHECK(there.load() > 0);
    CHECK(there.load() + elsewhere.load() == 50);
    CHECK_FALSE(root_there);
    check_all_back(book);
  }
}

// K30
TEST_CASE("a source of any size has the stacks of all fibers, the root's too", "[conformance][stacks][source]") {
  counted_stacks book;
  std::atomic<int> elsewhere{0};
  int makers = 0;
  {
    auto o = on(stack_source::of_any_size([&](std::size_t bytes) {
                  ++makers;
                  return counted_stacks::allocator(book, bytes);
                }),
                2);
    o.root_stack_size = 256 * kib;
    ramie::run(o, [&] {
      const auto look = [&] { elsewhere += !book.holds(here()); };
      look();
      nursery n;
      for (int i = 0; i < 20; ++i) {
        n.spawn([&] {
          look();
          ramie::yield();
          look();
        });
        n.spawn({.stack_size = 128 * kib}, [&] {
          look();
          ramie::yield();
          look();
        });
      }
      n.join();
    });
  }
  CHECK(elsewhere.load() == 0);
  CHECK(makers == 3);  // one for each size, however many stacks
  CHECK(book.sizes().size() == 3);
  CHECK(*book.sizes().begin() >= 64 * kib + 2 * counted_stacks::page);
  check_all_back(book);
}

// K31
TEST_CASE("stacks that are too small for the promise are refused at once", "[conformance][stacks][source][misuse]") {
  counted_stacks book;
  std::string told;
  try {
    ramie::runtime rt(on(book, least - 1, 1));
  } catch (const ramie::usage_error& e) {
    told = e.what();
  }
  CHECK(told.find(std::to_string(least - 1)) != std::string::npos);
  CHECK(told.find(std::to_string(least)) != std::string::npos);
  CHECK(told.find("options.stacks") != std::string::npos);
  CHECK(book.live() == 0);
  ramie::run(on(book, least, 1), [] { ramie::yield(); });
  check_all_back(book);
  auto larger = on(book, least, 1);
  larger.stack_size = 64 * kib + 1;  // rounded up to 128
  CHECK_THROWS_AS(ramie::runtime(larger), ramie::usage_error);
  CHECK(book.live() == 0);
}

// K31
TEST_CASE("the promise can be used to its last kilobyte on a user's stack", "[conformance][stacks][source]") {
  if (test::sanitized) LEFT_OUT("sanitizers make frames larger than what they are told");
  counted_stacks book;
  std::atomic<int> sum{0}, there{0};
  ramie::run(on(book, least, 1), [&] {
    nursery n;
    for (int i = 0; i < 3; ++i) {
      n.spawn([&] {
        ramie::yield();
        volatile char frame[63 * kib];
        for (std::size_t at = 0; at < sizeof frame; at += kib) frame[at] = 1;
        sum += frame[0] + frame[62 * kib];
        there += book.holds(const_cast<const char*>(frame));
      });
    }
    for (int i = 0; i < 4; ++i) ramie::yield();
    n.join();
  });
  CHECK(sum.load() == 6);
  CHECK(there.load() == 3);
}

struct always_throws {
  counted_stacks::context allocate() { throw std::runtime_error("sold out"); }
  void deallocate(counted_stacks::context&) noexcept {}
};
struct returns_nothing {
  counted_stacks::context allocate() { return {}; }
  void deallocate(counted_stacks::context&) noexcept {}
};

// K32
TEST_CASE("what the allocator throws at first comes out of the runtime's constructor",
          "[conformance][stacks][source]") {
  CHECK_THROWS_AS(ramie::runtime(on(stack_source(always_throws()), 1)), std::runtime_error);
  CHECK_THROWS_AS(ramie::runtime(on(stack_source(returns_nothing()), 1)), std::bad_alloc);
  const auto make = [](std::size_t) -> always_throws { throw std::length_error("no such size"); };
  CHECK_THROWS_AS(ramie::runtime(on(stack_source::of_any_size(make), 1)), std::length_error);
}

// K32
TEST_CASE("a fiber for which the user's allocator has no stack fails, the others go on",
          "[conformance][stacks][source]") {
  counted_stacks book;
  auto o = on(book, roomy, 1);
  o.elastic = false;
  int ran = 0, without = 0, afterwards = 0;
  {
    ramie::runtime rt(o);
    rt.run([&] {
      gate door;
      fiber_group c(rt);
      c.spawn([&] { test::wait_at(door); });
      ramie::yield();
      book.refuse(true);
      for (int i = 0; i < 10; ++i) c.spawn([&] { test::wait_at(door); });
      ramie::yield();
      book.refuse(false);
      door.open();
      c.join();
      ran = c.ran();
      without = c.discarded(ramie::runtime_internal::discard_cause::no_stack);
      fiber_group again(rt);
      for (int i = 0; i < 10; ++i) again.spawn([] { ramie::yield(); });
      again.join();
      afterwards = again.ran();
    });
  }
  CHECK(ran >= 1);
  CHECK(without >= 1);
  CHECK(ran + without == 11);
  CHECK(afterwards == 10);
  CHECK(book.refused() >= 1);
  check_all_back(book);
}

// K32, K18. The allocator throws, and that is caught, while the fiber that leaves is itself in a catch block.
TEST_CASE("an allocator that throws does not disturb the exception of the fiber that waits",
          "[conformance][stacks][source]") {
  counted_stacks book;
  auto o = on(book, roomy, 1);
  o.elastic = false;
  std::atomic<int> whole{0};
  {
    ramie::runtime rt(o);
    rt.run([&] {
      fiber_group c(rt);
      for (int i = 0; i < 3; ++i) {
        c.spawn([&, i] {
          try {
            throw i;
          } catch (int mine) {
            book.refuse(true);
            ramie::yield();
            book.refuse(false);
            try {
              throw;
            } catch (int still) {
              whole += still == mine && std::uncaught_exceptions() == 0;
            }
          }
        });
        ramie::yield();
        book.refuse(false);
      }
      c.join();
    });
  }
  CHECK(whole.load() == 3);
  check_all_back(book);
}

[[gnu::noinline]] int recurse(int depth) {
  volatile char frame[512] = {};
  frame[0] = static_cast<char>(depth);
  return depth == 0 ? 0 : recurse(depth - 1) + frame[0];
}

// K15, K30
TEST_CASE("an overflow of a user's stack names the fiber", "[conformance][stacks][source][death]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind report the death of a child");
  const auto end = test::in_child([] {
    counted_stacks book;
    ramie::runtime rt(on(book, roomy, 1));
    rt.run([&] {
      fiber_group c(rt);
      c.spawn([] { std::printf("%d", recurse(1'000'000)); });
    });
  });
  INFO(end.errors);
  CHECK(end.signal == SIGSEGV);
  CHECK(end.errors.find("stack overflow in fiber #") != std::string::npos);
  CHECK(end.errors.find("stacks_supplied.cpp") != std::string::npos);
  CHECK(end.errors.find("64 KiB") != std::string::npos);
}

// J7, K30
TEST_CASE("a join calls its children above it on a user's stack if there is room", "[conformance][stacks][source]") {
  if (test::sanitized) LEFT_OUT("AddressSanitizer may keep locals elsewhere");
  for (const auto bytes : {least, roomy}) {
    counted_stacks book;
    std::atomic<int> in_place{0};
    ramie::run(on(book, bytes, 1), [&] {
      nursery outer;
      outer.spawn([&] {
        ramie::yield();
        volatile char used[8 * kib];
        used[0] = 1;
        nursery n;
        const auto* const joiner = static_cast<const char*>(here());
        for (int i = 0; i < 5; ++i) {
          n.spawn([&] {
            const auto* const child = static_cast<const char*>(here());
            in_place += child < joiner && joiner - child < 24 * 1024;
          });
        }
        n.join();
        used[1] = used[0];
      });
      ramie::yield();
      outer.join();
    });
    CHECK(in_place.load() == (bytes == roomy ? 5 : 0));
    check_all_back(book);
  }
}

// K33
TEST_CASE("copies of a source share the allocator, one call at a time", "[conformance][stacks][source]") {
  counted_stacks book;
  const auto setup = on(book, roomy, 1);
  const auto make_runtimes = [&setup] {
    for (int i = 0; i < 300; ++i) ramie::runtime rt(setup);  // takes a stack and gives it back
  };
  std::thread other(make_runtimes);
  make_runtimes();
  other.join();
  CHECK(book.allocated() == 600);
  check_all_back(book);
}

// K33
TEST_CASE("an allocator lives as long as the last runtime that uses it", "[conformance][stacks][source]") {
  struct mortal {
    std::shared_ptr<counted_stacks> book;
    counted_stacks::context allocate() { return counted_stacks::allocator(*book, roomy).allocate(); }
    void deallocate(counted_stacks::context& c) noexcept { counted_stacks::allocator(*book, roomy).deallocate(c); }
  };
  auto book = std::make_shared<counted_stacks>();
  {
    auto rt = std::make_unique<ramie::runtime>(on(stack_source(mortal{book}), 1));
    CHECK(book.use_count() > 1);  // the source and its options are gone
    rt->run([] {
      nursery n;
      n.spawn([] { ramie::yield(); });
      ramie::yield();
      n.join();
    });
  }
  CHECK(book.use_count() == 1);
  check_all_back(*book);
}

TEST_CASE("a source says whether it has an allocator", "[conformance][stacks][source]") {
  counted_stacks book;
  CHECK_FALSE(stack_source());
  CHECK(stack_source(counted_stacks::allocator(book, roomy)));
  CHECK_FALSE(ramie::options().stacks);
}

}  // namespace conformance_stacks_supplied
