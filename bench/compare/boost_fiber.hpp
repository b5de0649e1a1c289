// SPDX-License-Identifier: BSL-1.0
// What makes Boost.Fiber fast: stacks that are used again, and an algorithm that suits the workload.
#pragma once

#include <boost/fiber/algo/work_stealing.hpp>
#include <boost/fiber/all.hpp>
#include <condition_variable>
#include <mutex>

#include <compare/program.hpp>

namespace compare {

namespace fibers = boost::fibers;

inline constexpr std::size_t stack_bytes = 16 * 1024;

// Stacks for fibers that may end on another thread than they began on.
struct thread_stacks {
  using traits_type = boost::context::stack_traits;
  struct list {
    std::vector<boost::context::stack_context> free;
    ~list() {
      for (auto& s : free) fibers::fixedsize_stack(stack_bytes).deallocate(s);
    }
  };
  static list& mine() {
    thread_local list l;
    return l;
  }
  static boost::context::stack_context allocate() {
    auto& free = mine().free;
    if (free.empty()) return fibers::fixedsize_stack(stack_bytes).allocate();
    const auto s = free.back();
    free.pop_back();
    return s;
  }
  static void deallocate(boost::context::stack_context& s) noexcept { mine().free.push_back(s); }
};

// The youngest first. The dispatcher, which frees the stacks of fibers that have ended, has its turn now and then.
class depth_first final : public fibers::algo::algorithm {
 public:
  void awakened(fibers::context* c) noexcept override {
    if (c->is_context(fibers::type::dispatcher_context)) {
      dispatcher_ = c;
    } else {
      c->ready_link(ready_);
    }
  }
  fibers::context* pick_next() noexcept override {
    if (dispatcher_ != nullptr && (ready_.empty() || ++picks_ % 64 == 0)) return std::exchange(dispatcher_, nullptr);
    if (ready_.empty()) return nullptr;
    fibers::context* const c = &ready_.back();
    ready_.pop_back();
    return c;
  }
  bool has_ready_fibers() const noexcept override { return !ready_.empty(); }
  void suspend_until(const std::chrono::steady_clock::time_point& time) noexcept override {
    std::unique_lock hold(lock_);
    const auto told = [this] { return std::exchange(told_, false); };
    if (time == std::chrono::steady_clock::time_point::max()) {
      waiting_.wait(hold, told);
    } else {
      waiting_.wait_until(hold, time, told);
    }
  }
  void notify() noexcept override {
    {
      std::lock_guard hold(lock_);
      told_ = true;
    }
    waiting_.notify_all();
  }

 private:
  fibers::scheduler::ready_queue_type ready_{};
  fibers::context* dispatcher_ = nullptr;
  unsigned picks_ = 0;
  std::mutex lock_;
  std::condition_variable waiting_;
  bool told_ = false;
};

enum class shape { fork_join, pipes };

// Runs `f` as the main fiber of one thread, or of one that has a second one to help.
template <shape Shape, class F>
result on(unsigned workers, F f) {
  if (workers == 1) {
    if (Shape == shape::fork_join) fibers::use_scheduling_algorithm<depth_first>();
    return f(fibers::pooled_fixedsize_stack(stack_bytes));
  }
  constexpr bool suspend = Shape == shape::pipes;
  fibers::mutex m;
  fibers::condition_variable_any over;
  bool done = false;
  std::thread helper([&] {
    fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers, suspend);
    std::unique_lock hold(m);
    over.wait(hold, [&] { return done; });
  });
  fibers::use_scheduling_algorithm<fibers::algo::work_stealing>(workers, suspend);
  const result r = f(thread_stacks{});
  {
    std::unique_lock hold(m);
    done = true;
  }
  over.notify_all();
  helper.join();
  return r;
}

}  // namespace compare
