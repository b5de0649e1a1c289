// SPDX-License-Identifier: BSL-1.0
// The pool of stacks with a supply, and what it says about the room on a stack.
#include <cstddef>
#include <cstdlib>
#include <vector>

#include <ramie/platform/stack_pool.hpp>
#include <support/test.hpp>

namespace unit_stack_supply {

using namespace ramie::platform;

void never_entered(arrival) {}

// Stacks of class 2, from the heap.
struct heap_supply final : stack_supply {
  int live = 0, made = 0;
  bool refuses = false;
  stack_pool* asks = nullptr;  // it is called with no lock of the pool held

  bool serves(std::uint8_t size_class) const noexcept override { return size_class == 2; }
  memory allocate(std::uint8_t size_class) noexcept override {
    if (asks != nullptr) (void)asks->count();
    if (refuses) return {};
    ++live;
    ++made;
    auto* const low = static_cast<char*>(std::malloc(usual_supplied_bytes(size_class)));
    return {low, low + usual_supplied_bytes(size_class)};
  }
  void deallocate(const memory& which) noexcept override {
    if (asks != nullptr) (void)asks->count();
    --live;
    std::free(which.low);
  }
};

TEST_CASE("a pool takes stacks of the classes that its supply serves from it", "[unit][stacks]") {
  heap_supply supply;
  {
    stack_pool pool(&never_entered, guard_kind::automatic, 1, &supply);
    supply.asks = &pool;
    stack_block* const own = pool.take(0);
    REQUIRE(own != nullptr);
    CHECK(supply.made == 0);
    std::vector<stack_block*> taken;
    for (int i = 0; i < 4; ++i) {
      std::uint32_t count = 16;
      taken.push_back(pool.take_batch(2, count));
      REQUIRE(taken.back() != nullptr);
      CHECK(count == 1);
      CHECK(reinterpret_cast<std::uintptr_t>(taken.back()) % 64 == 0);
    }
    CHECK(supply.live == 4);
    CHECK(pool.count().taken == 5);
    supply.refuses = true;
    std::uint32_t count = 16;
    CHECK(pool.take_batch(2, count) == nullptr);
    CHECK(count == 0);
    CHECK(pool.count().taken == 5);
    for (auto* s : taken) pool.give_back(s);
    CHECK(supply.live == 4);  // giving back is cheap
    CHECK(pool.take(2) == taken.back());
    pool.give_back(taken.back());
    // Beyond the hot ones they go back where they came from, a few at a time.
    CHECK(pool.trim(2) == annotate::may_trim_stacks);
    CHECK(supply.live == (annotate::may_trim_stacks ? 2 : 4));
    CHECK_FALSE(pool.trim(10));
    CHECK(supply.live == (annotate::may_trim_stacks ? 1 : 4));
    pool.give_back(own);
    supply.asks = nullptr;
  }
  CHECK(supply.live == 0);
}

// J7
TEST_CASE("the room on a stack is known, and none where the stack pointer is on another one", "[unit][stacks]") {
  stack_pool pool(&never_entered);
  stack_block* const stack = pool.take(2);
  stack_block* const small = pool.take(0);
  REQUIRE(stack != nullptr);
  REQUIRE(small != nullptr);
  const auto at = [&](std::size_t above_low) { return stack_pool::largest_call(*stack, stack->low + above_low); };
  constexpr std::size_t kib = 1024;
  CHECK(at(16 * kib) == -1);
  CHECK(at(17 * kib - 1) == -1);
  CHECK(at(17 * kib) == 0);
  CHECK(at(33 * kib - 1) == 0);
  CHECK(at(33 * kib) == 1);
  CHECK(at(65 * kib) == 2);
  CHECK(at(120 * kib) == 2);
  // Nowhere on this stack.
  char* const top = reinterpret_cast<char*>(stack);
  CHECK(stack_pool::largest_call(*stack, top + 4 * kib) == -1);
  CHECK(stack_pool::largest_call(*stack, top + 100'000 * kib) == -1);
  CHECK(stack_pool::largest_call(*stack, stack->low - 8 * kib) == -1);
  CHECK(stack_pool::largest_call(*stack, stack->low - 100'000 * kib) == -1);
  CHECK(stack_pool::largest_call(*small, reinterpret_cast<char*>(small) - 64) == -1);
  CHECK(stack_pool::largest_call(stack_block{}, top) == -1);  // a thread's own
  pool.give_back(stack);
  pool.give_back(small);
}

}  // namespace unit_stack_supply
