// SPDX-License-Identifier: BSL-1.0
#include "supplied_stacks.hpp"

#include <mutex>
#include <string>

#include <ramie/error.hpp>

namespace ramie::runtime_internal {

void refuse_small_stack(std::size_t bytes, std::size_t least) {
  throw usage_error("ramie: runtime::runtime: the allocator of options.stacks has stacks of " + std::to_string(bytes) +
                    " bytes. Give them at least " + std::to_string(least) +
                    ": the pages of options.stack_size and two more.");
}

stack_memory stack_stock::allocate(std::uint8_t size_class) {
  std::lock_guard one_at_a_time(mutex_);
  return from_->allocate(platform::usual_supplied_bytes(size_class), platform::least_supplied_bytes(size_class));
}

void stack_stock::deallocate(const stack_memory& which) noexcept {
  std::lock_guard one_at_a_time(mutex_);
  from_->deallocate(which);
}

supplied_stacks::supplied_stacks(const stack_source& from, std::uint8_t default_class)
    : stock_(from.stock_), default_class_(default_class) {
  if (stock_ != nullptr) stock_->deallocate(stock_->allocate(default_class));
}

supplied_stacks::memory supplied_stacks::allocate(std::uint8_t size_class) noexcept {
  try {
    const auto found = stock_->allocate(size_class);
    return {found.low, found.top};
  } catch (...) {
    return {};  // the fiber that needs it fails with stack_exhausted
  }
}

void supplied_stacks::deallocate(const memory& which) noexcept {
  stock_->deallocate({which.low, which.top});
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

stack_source::stack_source(std::unique_ptr<::ramie::runtime_internal::stack_supplier> from, bool any_size)
    : stock_(std::make_shared<::ramie::runtime_internal::stack_stock>(std::move(from), any_size)) {}

}  // namespace ramie::inline v0
