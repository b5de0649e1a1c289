// SPDX-License-Identifier: BSL-1.0
// ramie's stacks for boost::context::fiber and everything else that takes a StackAllocator. Needs the headers of
// Boost.Context, so <ramie/ramie.hpp> does not include it. The other direction is <ramie/stack_source.hpp>.
// docs/stacks.md.
#pragma once

#include <boost/context/stack_context.hpp>
#include <boost/context/stack_traits.hpp>

#include <cstddef>
#include <cstdint>

#include <ramie/detail/raw_stack.hpp>

namespace ramie::inline v0 {

// A StackAllocator over a pool of guarded stacks that all threads share, with or without a runtime. The pool lasts as
// long as the process, so a stack may outlive every runtime and be given back by any thread or fiber. Copies are equal:
// a stack may be given back to any of them. No function is a cancellation point.
class stack_allocator {
 public:
  using traits_type = boost::context::stack_traits;

  // Stacks of at least `bytes` above their guard, 16 KiB to 1 GiB. Throws usage_error beyond that.
  explicit stack_allocator(std::size_t bytes = 64 * 1024)
      : size_class_(::ramie::runtime_internal::class_of_raw_stack(bytes)) {}

  // `size` counts what can be used: the guard is below. Throws std::bad_alloc when memory, address space or mappings
  // are exhausted.
  [[nodiscard]] boost::context::stack_context allocate() {
    const auto found = ::ramie::runtime_internal::take_raw_stack(size_class_);
    boost::context::stack_context made;
    made.sp = found.top;
    made.size = found.bytes;
    return made;
  }

  // Gives back what allocate() returned, once; nothing may run on it any more.
  void deallocate(boost::context::stack_context& which) noexcept {
    ::ramie::runtime_internal::give_raw_stack(which.sp);
  }

 private:
  std::uint8_t size_class_;
};

}  // namespace ramie::inline v0
