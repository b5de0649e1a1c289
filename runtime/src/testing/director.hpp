// SPDX-License-Identifier: BSL-1.0
// Who decides what runs next under explore: one worker, every choice drawn from a seed.
//
// The scheduler's chaotic branches ask. What becomes runnable is put into the injection queue, as always in chaos mode;
// the director empties it into a list of its own before each decision and names one of the list. Nothing it decides by
// depends on an address, a time, or an order that another thread could change: the same program with the same seed is
// run the same way in every process.
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
#include <ramie/platform/thread.hpp>
#include <ramie/testing.hpp>

namespace ramie::detail {

class fiber;
class scheduler;
class worker;

// splitmix64: seeds that follow each other give streams that have nothing in common.
class seeded {
 public:
  explicit seeded(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept;
  std::uint32_t below(std::uint32_t bound) noexcept { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }

 private:
  std::uint64_t state_;
};

class director {
 public:
  director(std::uint64_t seed, const testing::explore_options& wanted);

  // On the worker's thread, for its scheduler or as one of its fibers. They end the program if memory runs out.
  [[nodiscard]] fiber* next(worker& w) noexcept;    // null: nobody is runnable
  [[nodiscard]] bool preempts(worker& w) noexcept;  // the running fiber must make way
  [[nodiscard]] bool preempts_after_wake(worker& w) noexcept { return wanted_.wake_switches && preempts(w); }
  void yields(fiber& f) noexcept;                        // the running fiber does so by itself
  [[nodiscard]] bool standstill(scheduler& s) noexcept;  // every fiber is blocked for good. True: no longer

  // Any thread. The first failure stands.
  void fail(std::string what, std::exception_ptr cause) noexcept;

  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  // The runtime has ended; what `run` threw, or null.
  [[nodiscard]] testing::explore_report verdict(std::exception_ptr thrown);

 private:
  void collect(scheduler& s);
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
  seeded dice_;
  std::vector<fiber*> ready_;
  std::vector<std::int64_t> priorities_;  // by the fiber's number
  std::int64_t lowest_ = 0;
  std::vector<std::size_t> falls_;  // the points at which the running fiber loses its priority
  std::size_t points_ = 0;          // at which a fiber could have been made to make way for another
  std::size_t steps_ = 0;
  std::vector<std::uint32_t> trace_;
  bool unwinding_ = false;
  bool failed_ = false;
  std::string failure_;
  std::exception_ptr cause_;
};

}  // namespace ramie::detail
