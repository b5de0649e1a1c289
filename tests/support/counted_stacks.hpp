// SPDX-License-Identifier: BSL-1.0
// A StackAllocator without Boost, which keeps count of its stacks.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>

namespace test {

class counted_stacks {
 public:
  static constexpr std::size_t page = 4096;

  // Not Boost's, but like it; it has more to carry, as Boost's may have.
  struct context {
    std::size_t size = 0;
    void* sp = nullptr;
    int number = 0;
  };

  // Makes stacks of `bytes`, whose lowest page is a guard.
  class allocator {
   public:
    allocator(counted_stacks& in, std::size_t bytes) : in_(&in), bytes_(bytes) {}
    context allocate() { return in_->allocate(bytes_); }
    void deallocate(context& which) noexcept { in_->deallocate(which); }

   private:
    counted_stacks* in_;
    std::size_t bytes_;
  };

  // Refuses everything from now on, or nothing any more, by an exception that is no std::exception.
  void refuse(bool yes) { refusing_ = yes; }
  struct refusal {};

  [[nodiscard]] bool holds(const void* address) {
    std::lock_guard hold(mutex_);
    const auto* const at = static_cast<const char*>(address);
    const auto above = live_.upper_bound(at);
    if (above == live_.begin()) return false;
    const auto& [base, size] = *std::prev(above);
    return at < base + size;
  }
  [[nodiscard]] std::size_t live() {
    std::lock_guard hold(mutex_);
    return live_.size();
  }
  [[nodiscard]] std::set<std::size_t> sizes() {
    std::lock_guard hold(mutex_);
    return sizes_;
  }
  [[nodiscard]] int allocated() const { return allocated_.load(); }
  [[nodiscard]] int refused() const { return refused_.load(); }
  [[nodiscard]] int overlaps() const { return overlaps_.load(); }  // calls that came while another was under way
  [[nodiscard]] int strange() const { return strange_.load(); }    // given back what was not, or no longer, out

 private:
  // Whether calls overlap is seen more surely if they take their time.
  struct presence {
    counted_stacks& in;
    explicit presence(counted_stacks& l) : in(l) {
      if (in.inside_.exchange(true)) ++in.overlaps_;
      std::this_thread::yield();
    }
    ~presence() { in.inside_ = false; }
  };

  context allocate(std::size_t bytes) {
    const presence here(*this);
    if (refusing_) {
      ++refused_;
      throw refusal();
    }
    void* const base = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) throw std::bad_alloc();
    ::mprotect(base, page, PROT_NONE);
    std::lock_guard hold(mutex_);
    live_.emplace(static_cast<char*>(base), bytes);
    sizes_.insert(bytes);
    return {bytes, static_cast<char*>(base) + bytes, ++allocated_};
  }
  void deallocate(const context& which) noexcept {
    const presence here(*this);
    char* const base = static_cast<char*>(which.sp) - which.size;
    std::lock_guard hold(mutex_);
    if (live_.erase(base) != 1 || which.number < 1 || which.number > allocated_) {
      ++strange_;
      return;
    }
    ::munmap(base, which.size);
  }

  std::mutex mutex_;
  std::map<const char*, std::size_t> live_;
  std::set<std::size_t> sizes_;
  std::atomic<bool> refusing_{false}, inside_{false};
  std::atomic<int> allocated_{0}, refused_{0}, overlaps_{0}, strange_{0};
};

}  // namespace test
