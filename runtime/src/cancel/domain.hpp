// SPDX-License-Identifier: BSL-1.0
// What the cancellations of one runtime share: the epoch that fibers compare, the locks of sweeps and links, and
// reasons for cancellations that have no memory to say why. The handshake between a canceller and a parking fiber:
// cancel_scope.hpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ramie/cancel.hpp>
#include <ramie/platform/atomic.hpp>
#include <ramie/platform/cpu.hpp>
#include <ramie/platform/thread.hpp>

namespace ramie::runtime_internal {

class alignas(platform::cache_line) cancel_domain {
 public:
  // Throws std::bad_alloc.
  cancel_domain();
  cancel_domain(const cancel_domain&) = delete;
  cancel_domain& operator=(const cancel_domain&) = delete;

  // How many cancellations there have been. Workers keep its address.
  [[nodiscard]] const platform::atomic<std::uint64_t>& epoch() const noexcept { return epoch_; }
  // Canceller's step 2 of cancel_scope.hpp, under lock_sweeps().
  void advance_epoch() noexcept { epoch_.fetch_add(1, std::memory_order_seq_cst); }

  // One sweep at a time.
  [[nodiscard]] std::lock_guard<platform::mutex> lock_sweeps() noexcept {
    return std::lock_guard<platform::mutex>(sweep_mutex_);
  }
  // One scope at a time links itself to its ancestors.
  [[nodiscard]] std::lock_guard<platform::mutex> lock_links() noexcept {
    return std::lock_guard<platform::mutex>(link_mutex_);
  }

  // For a cancellation that can't even afford to say why.
  [[nodiscard]] const std::shared_ptr<const cancel_reason>& unexplained(cancel_kind kind) const noexcept {
    return unexplained_[static_cast<std::size_t>(kind)];
  }

 private:
  platform::atomic<std::uint64_t> epoch_{0};
  // Every start of a task reads the epoch: what is locked more often than it moves is elsewhere.
  alignas(platform::cache_line) platform::mutex sweep_mutex_;
  platform::mutex link_mutex_;
  std::vector<std::shared_ptr<const cancel_reason>> unexplained_;  // by kind
};

}  // namespace ramie::runtime_internal
