// SPDX-License-Identifier: BSL-1.0
// Stacks from a user's allocator: anything that models Boost.Context's StackAllocator, Boost's own allocators among
// them. This header needs no Boost. The other direction is <ramie/stack_allocator.hpp>. docs/stacks.md.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace ramie::runtime_internal {

// boost::context::stack_context, or a type like it: `sp` is one past the highest byte, `size` counts down from there.
template <class C>
concept stack_context_like = std::copy_constructible<C> && requires(const C& c) {
  { c.sp } -> std::convertible_to<void*>;
  { c.size } -> std::convertible_to<std::size_t>;
};
template <class A>
concept stack_allocator_like = std::move_constructible<A> && requires(A& a) {
  { a.allocate() } -> stack_context_like;
  requires requires(std::remove_cvref_t<decltype(a.allocate())>& c) { a.deallocate(c); };
};
template <class F>
concept stack_allocator_maker = std::move_constructible<F> && requires(F& make, std::size_t bytes) {
  { make(bytes) } -> stack_allocator_like;
};

struct stack_memory {
  char* low;
  char* top;  // one past the highest byte that may be used
};

// Throws usage_error.
[[noreturn]] void refuse_small_stack(std::size_t bytes, std::size_t least);

// A type-erased allocator. Called by one thread at a time.
class stack_supplier {
 public:
  stack_supplier() = default;
  stack_supplier(const stack_supplier&) = delete;
  stack_supplier& operator=(const stack_supplier&) = delete;
  virtual ~stack_supplier() = default;

  // At least `least` bytes; `usual` are asked for where one can ask. Throws what the allocator throws, or usage_error.
  [[nodiscard]] virtual stack_memory allocate(std::size_t usual, std::size_t least) = 0;
  virtual void deallocate(const stack_memory& which) noexcept = 0;
};

// What the allocator wants back is kept at the top of the stack itself.
template <class A>
struct stack_receipt {
  using context = std::remove_cvref_t<decltype(std::declval<A&>().allocate())>;
  A* from;
  context whole;

  [[nodiscard]] static stack_memory allocate(A& from, std::size_t least) {
    context whole = from.allocate();
    auto* const end = static_cast<char*>(static_cast<void*>(whole.sp));
    const auto size = static_cast<std::size_t>(whole.size);
    if (end == nullptr) throw std::bad_alloc();
    if (size < least) {
      from.deallocate(whole);
      refuse_small_stack(size, least);
    }
    const auto place = reinterpret_cast<std::uintptr_t>(end - sizeof(stack_receipt)) & ~(alignof(stack_receipt) - 1);
    auto* const receipt = ::new (reinterpret_cast<void*>(place)) stack_receipt{&from, whole};
    return {end - size, reinterpret_cast<char*>(receipt)};
  }
  static void deallocate(const stack_memory& which) noexcept {
    auto* const receipt = std::launder(reinterpret_cast<stack_receipt*>(which.top));
    A* const to = receipt->from;
    context whole = receipt->whole;
    receipt->~stack_receipt();
    to->deallocate(whole);
  }
};

template <class A>
class supplier_of_one_size final : public stack_supplier {
 public:
  explicit supplier_of_one_size(A from) : from_(std::move(from)) {}
  stack_memory allocate(std::size_t, std::size_t least) override { return stack_receipt<A>::allocate(from_, least); }
  void deallocate(const stack_memory& which) noexcept override { stack_receipt<A>::deallocate(which); }

 private:
  A from_;
};

template <class F>
class supplier_of_any_size final : public stack_supplier {
 public:
  explicit supplier_of_any_size(F make) : make_(std::move(make)) {}
  stack_memory allocate(std::size_t usual, std::size_t least) override {
    return stack_receipt<allocator>::allocate(allocator_for(usual), least);
  }
  void deallocate(const stack_memory& which) noexcept override { stack_receipt<allocator>::deallocate(which); }

 private:
  using allocator = std::remove_cvref_t<std::invoke_result_t<F&, std::size_t>>;
  struct entry {
    std::size_t bytes;
    allocator from;
    std::unique_ptr<entry> next;
  };

  allocator& allocator_for(std::size_t bytes) {
    for (entry* e = first_.get(); e != nullptr; e = e->next.get()) {
      if (e->bytes == bytes) return e->from;
    }
    first_.reset(new entry{bytes, make_(bytes), std::move(first_)});
    return first_->from;
  }

  F make_;
  std::unique_ptr<entry> first_;
};

class stack_stock;
class supplied_stacks;

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// Where a runtime gets the stacks of its fibers from: options.stacks. Copies share the allocator, which lives until the
// last copy and the last runtime that uses it are gone.
//
// The runtime keeps stacks that fibers no longer need and uses them again. It gives back what it has too many of, when
// a worker has nothing else to do, and the rest when it ends.
//
// The allocator is called by one thread at a time for all copies of a source, by any thread, perhaps on a fiber's
// stack: so it must get by with a few kilobytes and must not wait for or spawn fibers. A stack may be given back by
// another thread than the one that took it. If allocate() throws, whatever it is, the fiber that needs the stack fails
// with stack_exhausted. deallocate() must not throw.
//
// The lowest page of a stack counts as its guard: nothing of ramie's is there. If it can't be read or written, as
// with boost::context::protected_fixedsize_stack, an overflow is reported with the fiber's name; if it can, an overflow
// is not noticed and may destroy what lies below. A stack of segments is not supported.
class stack_source {
 public:
  // None: the runtime's own stacks.
  stack_source() noexcept = default;

  // The stacks of options.stack_size; fibers of another size, as the root fiber is unless options.root_stack_size is as
  // large, are on the runtime's own. They must have at least options.stack_size (rounded up to a power of two) + 8 KiB;
  // with 64 KiB more, children of a join can run above the joiner. Throws std::bad_alloc.
  template <class A>
  requires(!std::same_as<A, stack_source> && ::ramie::runtime_internal::stack_allocator_like<A>)
  explicit stack_source(A allocator)
      : stack_source(std::make_unique<::ramie::runtime_internal::supplier_of_one_size<A>>(std::move(allocator)),
                     false) {}

  // All stacks: make(bytes) returns an allocator of stacks of that many bytes, and is called once for each size that is
  // needed, under the same conditions as the allocator itself. Throws std::bad_alloc.
  template <class F>
  requires(::ramie::runtime_internal::stack_allocator_maker<F>)
  [[nodiscard]] static stack_source of_any_size(F make) {
    return {std::make_unique<::ramie::runtime_internal::supplier_of_any_size<F>>(std::move(make)), true};
  }

  // Whether it has an allocator; else the runtime's own stacks are used. Not a cancellation point.
  [[nodiscard]] explicit operator bool() const noexcept { return stock_ != nullptr; }

 private:
  friend class ::ramie::runtime_internal::supplied_stacks;

  stack_source(std::unique_ptr<::ramie::runtime_internal::stack_supplier> from, bool any_size);

  std::shared_ptr<::ramie::runtime_internal::stack_stock> stock_;
};

}  // namespace ramie::inline v0
