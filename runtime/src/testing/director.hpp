// SPDX-License-Identifier: BSL-1.0
// Who decides what runs next under explore: one worker, every choice drawn from a seed.
//
// A scheduling policy. What becomes runnable is put into the injection queue; the director empties that into a list of
// its own before each decision and names one of the list. Nothing it decides by depends on an address, a time, or an
// order that another thread could change: the same program with the same seed is run the same way in every process.
//
// Fibers are known by a number, from 1, in the order in which they first became runnable (fiber::last_worker).
//
//   random walk  each of the runnable fibers, the running one included, is as likely as the others at every step.
//   PCT          fibers have random priorities, and the highest runs; at a few random steps the running fiber falls
//                below all others (Burckhardt et al., "A randomized scheduler with probabilistic guarantees of finding
//                bugs"). A fiber that yields of its own will falls, too, and so does, in long runs, who runs just then
//                every so often: else a fiber that waits in a loop of yields would never let anybody through.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include <ramie/cancel.hpp>
#include <ramie/platform/random.hpp>
#include <ramie/platform/thread.hpp>
#include <ramie/testing.hpp>

#include "../sched/policy.hpp"

namespace ramie::runtime_internal {

class director final : public scheduling_policy {
 public:
  director(std::uint64_t seed, const testing::explore_options& wanted);

  // These end the program if memory runs out.
  void enqueue(worker& w, fiber& f, bool woken) noexcept override;
  void enqueue_task(worker& w, fiber_record& task) noexcept override;
  fiber* next(worker& w) noexcept override;
  fiber* next_for_join(worker& w) noexcept override { return next(w); }
  bool decides_joins() const noexcept override { return true; }
  bool preempts(worker& w, point where) noexcept override;
  std::uint32_t budget(worker&) noexcept override { return 1; }
  void yielded(fiber& f) noexcept override;
  bool retires(worker&) noexcept override { return false; }
  bool standstill(scheduler& s) noexcept override;
  std::uint64_t seed() const noexcept override { return seed_; }
  void check_failed(const std::string& what) noexcept override { fail(what, nullptr); }
  void add_to(chaos_stats&) const noexcept override {}

  // Any thread. The first failure stands.
  void fail(std::string what, std::exception_ptr cause) noexcept;
  // The runtime has ended; what `run` threw, or null.
  [[nodiscard]] testing::explore_report verdict(std::exception_ptr thrown);

 private:
  void collect(worker& w);
  void admit(fiber& f);
  [[nodiscard]] std::size_t choose() noexcept;
  [[nodiscard]] std::int64_t& priority_of(const fiber& f) noexcept;
  void unwind(scheduler& s, cancel_reason why, std::string failure);
  void give_up(worker& w);

  const std::uint64_t seed_;
  const testing::explore_options wanted_;
  const bool by_priority_;

  // The fibers of the one worker are threads to ThreadSanitizer.
  platform::mutex mutex_;
  platform::splitmix random_;
  std::vector<fiber*> ready_;
  std::vector<std::int64_t> priorities_;  // by the fiber's number
  std::int64_t lowest_ = 0;
  std::vector<std::size_t> falls_;  // the points at which the running fiber loses its priority
  std::size_t points_ = 0;          // at which a fiber could have been made to yield to another
  std::size_t steps_ = 0;
  std::vector<std::uint32_t> trace_;
  bool unwinding_ = false;
  bool failed_ = false;
  std::string failure_;
  std::exception_ptr cause_;
};

}  // namespace ramie::runtime_internal
