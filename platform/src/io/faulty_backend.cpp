// SPDX-License-Identifier: BSL-1.0
// For tests: wraps a backend and does what the contract of io_backend.hpp allows but a backend rarely does: completions
// are held back and handed out in another order, and streams transfer fewer bytes than they could.
#include <sys/socket.h>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/io_backend.hpp>
#include <ramie/platform/thread.hpp>

#include "io_mechanisms.hpp"

namespace ramie::platform {

namespace {

bool is_stream(int fd) noexcept {
  int type = 0;
  socklen_t size = sizeof type;
  return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) != 0 || type == SOCK_STREAM;  // pipes and files are
}

bool can_be_short(const io_operation& op) noexcept {
  const bool counted = op.code == io_code::read || op.code == io_code::write || op.code == io_code::receive ||
                       op.code == io_code::send;
  return counted && op.count > 1 && is_stream(op.fd);
}

class faulty_backend final : public io_backend {
 public:
  explicit faulty_backend(std::unique_ptr<io_backend> inner) noexcept : inner_(std::move(inner)) {}

  [[nodiscard]] io_mechanism mechanism() const noexcept override { return inner_->mechanism(); }
  [[nodiscard]] bool wants_non_blocking() const noexcept override { return inner_->wants_non_blocking(); }
  void submit(io_operation& op) noexcept override {
    {
      std::lock_guard hold(mutex_);
      ++under_way_;
    }
    if (can_be_short(op) && faults::occurs(io_fault::short_count)) op.count = 1 + faults::draw(op.count - 1);
    inner_->submit(op);
  }
  void cancel(io_operation& op) noexcept override {
    {
      std::lock_guard hold(mutex_);
      if (std::ranges::find(held_, &op) != held_.end()) return;
    }
    inner_->cancel(op);
  }
  void flush() noexcept override { inner_->flush(); }

  [[nodiscard]] std::size_t poll(std::span<io_operation*> out) noexcept override {
    std::lock_guard hold(mutex_);
    hold_back(inner_->poll(out), out);
    return hand_out(out, faults::occurs(io_fault::order));
  }

  // Does not sleep while completions are held back: it hands those out.
  [[nodiscard]] std::size_t wait(std::span<io_operation*> out, time_point until) noexcept override {
    {
      std::lock_guard hold(mutex_);
      if (!held_.empty()) return hand_out(out, false);
    }
    const std::size_t count = inner_->wait(out, until);
    std::lock_guard hold(mutex_);
    hold_back(count, out);
    return hand_out(out, false);
  }

  void wake() noexcept override { inner_->wake(); }
  [[nodiscard]] std::size_t under_way() const noexcept override { return under_way_; }

 private:
  // With the lock. Puts each of them at a random place among those that are held back.
  void hold_back(std::size_t count, std::span<io_operation*> found) {
    for (std::size_t i = 0; i < count; ++i) {
      held_.insert(held_.begin() + faults::draw(static_cast<std::uint32_t>(held_.size() + 1)), found[i]);
    }
  }
  // With the lock. `late`: a random number of those that are there, perhaps none.
  [[nodiscard]] std::size_t hand_out(std::span<io_operation*> out, bool late) noexcept {
    const std::size_t ready = std::min(held_.size(), out.size());
    const std::size_t count = late ? faults::draw(static_cast<std::uint32_t>(ready + 1)) : ready;
    std::copy_n(held_.begin(), count, out.begin());
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(count));
    under_way_ -= count;
    if (!held_.empty()) inner_->wake();  // or the owner might sleep although there are completions
    return count;
  }

  const std::unique_ptr<io_backend> inner_;
  mutex mutex_;
  std::vector<io_operation*> held_;  // completions that have not been handed out
  counter under_way_;
};

}  // namespace

std::unique_ptr<io_backend> with_faults(std::unique_ptr<io_backend> inner) {
  if (!faults::enabled(io_fault::order) && !faults::enabled(io_fault::short_count)) return inner;
  return std::make_unique<faulty_backend>(std::move(inner));
}

}  // namespace ramie::platform
