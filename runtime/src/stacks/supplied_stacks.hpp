// SPDX-License-Identifier: BSL-1.0
// What a stack_source is inside, and how a runtime's pool of stacks sees it.
#pragma once

#include <cstdint>
#include <memory>

#include <ramie/platform/stack_pool.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/stack_source.hpp>

namespace ramie::runtime_internal {

// Shared by all copies of a source, perhaps by several runtimes: Boost's pooled allocator, for one, is not for several
// threads at once. Its mutex is a leaf in the lock order, unless the user's allocator takes locks.
class stack_stock {
 public:
  stack_stock(std::unique_ptr<stack_supplier> from, bool any_size) : any_size_(any_size), from_(std::move(from)) {}

  [[nodiscard]] bool any_size() const noexcept { return any_size_; }
  [[nodiscard]] stack_memory allocate(std::uint8_t size_class);  // throws anything
  void deallocate(const stack_memory& which) noexcept;

 private:
  const bool any_size_;
  platform::mutex mutex_;
  const std::unique_ptr<stack_supplier> from_;
};

// One runtime's view of a source.
class supplied_stacks final : public platform::stack_supply {
 public:
  // Takes one stack and gives it back, so that a source that can't work fails here: usage_error, or what the allocator
  // throws.
  supplied_stacks(const stack_source& from, std::uint8_t default_class);

  // Null: there is no source.
  [[nodiscard]] platform::stack_supply* get() noexcept { return stock_ != nullptr ? this : nullptr; }

  bool serves(std::uint8_t size_class) const noexcept override {
    return size_class == default_class_ || stock_->any_size();
  }
  memory allocate(std::uint8_t size_class) noexcept override;
  void deallocate(const memory& which) noexcept override;

 private:
  const std::shared_ptr<stack_stock> stock_;
  const std::uint8_t default_class_;
};

}  // namespace ramie::runtime_internal
