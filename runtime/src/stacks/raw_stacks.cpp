// SPDX-License-Identifier: BSL-1.0
// Stacks for boost::context::fiber: <ramie/stack_allocator.hpp>, without Boost. They come from a stack_pool; the user
// gets the memory below the stack_block.
#include <ramie/detail/raw_stack.hpp>

#include <new>
#include <string>

#include <ramie/error.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/stack_pool.hpp>

namespace ramie::runtime_internal {

namespace {

// The runtime's own part of the slots that reserve nothing beyond their promise.
constexpr std::size_t block_bytes = 1024;

void never_entered(platform::arrival) {
  platform::fatal("a stack of ramie::stack_allocator is run as a fiber's: corruption of the runtime.");
}

// Never destroyed: a static object may hold a boost::context::fiber.
platform::stack_pool& pool() {
  static auto& all = *new platform::stack_pool(never_entered);
  return all;
}

[[nodiscard]] std::size_t bytes_of(const platform::stack_block& stack) noexcept {
  return static_cast<std::size_t>(reinterpret_cast<const char*>(&stack) - stack.low);
}

}  // namespace

std::uint8_t class_of_raw_stack(std::size_t bytes) {
  if (bytes < platform::min_stack_size || bytes > platform::max_stack_size) {
    throw usage_error("ramie: stack_allocator::stack_allocator: a size of " + std::to_string(bytes) +
                      " bytes. Use from " + std::to_string(platform::min_stack_size) + " to " +
                      std::to_string(platform::max_stack_size) + ".");
  }
  const auto smallest = platform::stack_class_for(bytes);
  const bool holds = platform::slot_bytes(smallest) - platform::page_size >= bytes + block_bytes;
  return holds ? smallest : static_cast<std::uint8_t>(smallest + 1);
}

raw_stack take_raw_stack(std::uint8_t size_class) {
  platform::stack_block* const stack = pool().take(size_class);
  if (stack == nullptr) throw std::bad_alloc();
  return {stack, bytes_of(*stack)};
}

void give_raw_stack(void* top) noexcept {
  auto* const stack = static_cast<platform::stack_block*>(top);
  // The sanitizers forget what they know of its memory.
  const auto bytes = bytes_of(*stack) + sizeof(platform::stack_block);
  platform::annotate::stack_destroyed(stack->note, stack->low, bytes);
  platform::annotate::stack_created(stack->note, stack->low, bytes);
  pool().give_back(stack);
  (void)pool().trim(platform::stack_pool::largest_batch);
}

}  // namespace ramie::runtime_internal
