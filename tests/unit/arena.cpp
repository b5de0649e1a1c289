// SPDX-License-Identifier: BSL-1.0
#include <array>
#include <stdexcept>
#include <vector>

#include <ramie/arena.hpp>
#include <support/census.hpp>
#include <support/test.hpp>

namespace unit_arena {

TEST_CASE("an arena uses its first block before the heap", "[unit][arena]") {
  alignas(16) std::array<std::byte, 256> block;
  ramie::arena a(block);
  for (int i = 0; i < 8; ++i) {
    auto* const p = static_cast<std::byte*>(a.allocate(32));
    CHECK(p >= block.data());
    CHECK(p < block.data() + block.size());
  }
  CHECK(a.reserved() == 0);
  (void)a.allocate(1);
  CHECK(a.reserved() > 0);
  a.clear();
  CHECK(a.reserved() == 0);
  CHECK(a.allocate(32) == block.data());
}

TEST_CASE("an arena aligns, grows, and overlaps nothing", "[unit][arena]") {
  ramie::arena a;
  std::vector<std::pair<unsigned char*, std::size_t>> all;
  for (std::size_t i = 0; i < 2'000; ++i) {
    const std::size_t bytes = 1 + (i * 37) % 700 + (i % 100 == 0 ? 100'000 : 0);
    const std::size_t alignment = std::size_t{1} << (i % 10);
    auto* const p = static_cast<unsigned char*>(a.allocate(bytes, alignment));
    CHECK(reinterpret_cast<std::uintptr_t>(p) % alignment == 0);
    std::fill(p, p + bytes, static_cast<unsigned char>(i));
    all.emplace_back(p, bytes);
  }
  std::size_t damaged = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t k = 0; k < all[i].second; ++k) damaged += all[i].first[k] != static_cast<unsigned char>(i);
  }
  CHECK(damaged == 0);
  CHECK_THROWS_AS(a.allocate(SIZE_MAX / 2 + 1), std::bad_alloc);
}

TEST_CASE("a chunk of its own has room for its object wherever it is aligned", "[unit][arena]") {
  ramie::arena a;
  for (std::size_t alignment = 32; alignment <= 65'536; alignment *= 2) {
    const std::size_t before = a.reserved();
    (void)a.allocate(100'000, alignment);
    CHECK(a.reserved() - before >= 100'000 + alignment - alignof(std::max_align_t));
  }
}

TEST_CASE("an arena destroys what was made, youngest first, and nothing that failed", "[unit][arena]") {
  test::census people;
  std::vector<int> gone;
  struct thing {
    std::vector<int>& log;
    int number;
    thing(std::vector<int>& l, int n) : log(l), number(n) {}
    ~thing() { log.push_back(number); }
  };
  struct stillborn {
    test::citizen counted;
    explicit stillborn(test::census& c) : counted(c) { throw std::runtime_error("no"); }
  };
  {
    ramie::arena a;
    a.make<thing>(gone, 1);
    a.make<thing>(gone, 2);
    CHECK_THROWS_AS(a.make<stillborn>(people), std::runtime_error);
    a.make<test::citizen>(people);
    a.clear();
    CHECK(gone == std::vector<int>{2, 1});
    a.make<thing>(gone, 3);
  }
  CHECK(gone == std::vector<int>{2, 1, 3});
  CHECK(people.made.load() == 2);
  CHECK(people.alive() == 0);
}

// Enough of them for a chunk of their own.
TEST_CASE("what a destructor makes in its arena is destroyed, too", "[unit][arena]") {
  struct ancestor {
    ramie::arena& home;
    std::vector<int>& log;
    int generation;
    std::array<char, 700> bulk{};
    ancestor(ramie::arena& a, std::vector<int>& l, int g) : home(a), log(l), generation(g) {}
    ~ancestor() {
      log.push_back(generation);
      if (generation < 5) home.make<ancestor>(home, log, generation + 1);
    }
  };
  std::vector<int> gone;
  {
    ramie::arena a;
    a.make<ancestor>(a, gone, 3);
    a.make<ancestor>(a, gone, 4);
    a.clear();
    CHECK(gone == std::vector<int>{4, 5, 3, 4, 5});  // youngest first: a child before its parent's elder sibling
    CHECK(a.reserved() == 0);
    gone.clear();
    a.make<ancestor>(a, gone, 4);
  }
  CHECK(gone == std::vector<int>{4, 5});
}

}  // namespace unit_arena
