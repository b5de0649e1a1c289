// SPDX-License-Identifier: BSL-1.0
// Fail the k-th, for every k: a program is run once to count how often it asks the machine for something, then again
// and again with one of these questions refused, or that one and all after it. Each time it must end as documented, and
// leave nothing behind.
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <filesystem>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/source_text.hpp>
#include <support/test.hpp>

namespace test::faulty {

namespace faults = ramie::platform::faults;
using ramie::platform::fault;

// What a program throws on purpose.
struct deliberate : std::exception {
  [[nodiscard]] const char* what() const noexcept override { return "on purpose"; }
};

// How a program ended, as bits: a set says what is allowed.
enum ending_bits : unsigned {
  completed = 1,
  out_of_memory = 2,   // std::bad_alloc
  system_refused = 4,  // std::system_error
  no_stack = 8,        // ramie::stack_exhausted
  on_purpose = 16,
  something_else = 32,
};

[[nodiscard]] inline unsigned what_it_was(const std::exception_ptr& failure) {
  try {
    if (failure != nullptr) std::rethrow_exception(failure);
    return completed;
  } catch (const std::bad_alloc&) {
    return out_of_memory;
  } catch (const std::system_error&) {
    return system_refused;
  } catch (const ramie::stack_exhausted&) {
    return no_stack;
  } catch (const deliberate&) {
    return on_purpose;
  } catch (...) {
    return something_else;
  }
}

// Something the machine can refuse.
struct trouble {
  const char* name;
  unsigned may_end;  // a program, instead of as it should
  void (*plan)(long k, bool for_good);
  long (*asked)();
};

template <fault At>
constexpr trouble refusal(const char* name, unsigned may_end) {
  return {name, may_end, [](long k, bool good) { faults::plan_for(At, k, good ? faults::for_good : k); },
          [] { return faults::asked(At); }};
}

inline std::uint64_t allocations_before = 0;
inline const trouble no_memory{"operator new", out_of_memory | system_refused | no_stack,
                               [](long k, bool good) {
                                 allocations_before = allocations();
                                 (good ? fail_allocations_from : fail_allocation)(static_cast<int>(k));
                               },
                               [] { return static_cast<long>(allocations() - allocations_before); }};
// As on a kernel without MADV_GUARD_INSTALL.
inline const trouble no_mprotect{"mprotect of a guard", no_stack,
                                 [](long k, bool good) {
                                   faults::plan_for(fault::guard_by_madvise, k != 0 ? 1 : 0, faults::for_good);
                                   faults::plan_for(fault::guard_by_mprotect, k, good ? faults::for_good : k);
                                 },
                                 [] { return faults::asked(fault::guard_by_mprotect); }};

// What one run of a program is watched by. Its members need no memory.
class scene {
 public:
  census things;  // closures and elements
  std::atomic<long> ran{0};

  void expect(bool holds, ramie::source_location where = ramie::source_location::current()) noexcept {
    if (!holds && !is_wrong_.exchange(true)) wrong_ = where;
  }
  // Where the first one stands, and what; "" if all was well. When all have ended.
  [[nodiscard]] std::string wrong() const {
    if (!is_wrong_.load()) return "";
    return std::string(wrong_.file_name()) + ":" + std::to_string(wrong_.line()) + ": " + text_at(wrong_);
  }

 private:
  std::atomic<bool> is_wrong_{false};
  ramie::source_location wrong_;
};

struct program {
  const char* name;
  void (*run)(ramie::runtime& rt, scene& s);
  unsigned workers = 2;
  unsigned must_end = completed;  // unless it is refused something it can't do without
};

// Counts reports; they are about to be made when there is no memory.
class report_count {
 public:
  report_count() : former_(ramie::set_report_handler([](const ramie::report&) noexcept { all.fetch_add(1); })) {
    all.store(0);
  }
  ~report_count() { ramie::set_report_handler(former_); }
  report_count(const report_count&) = delete;
  report_count& operator=(const report_count&) = delete;
  static inline std::atomic<long> all{0};

 private:
  ramie::report_handler former_;
};

[[nodiscard]] inline long entries_of(const char* folder) {
  long count = 0;
  for ([[maybe_unused]] const auto& each : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}
// A thread that was joined may still be listed for a moment.
[[nodiscard]] inline bool threads_are_back_to(long expected) {
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (entries_of("/proc/self/task") > expected) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

// Whether a runtime still does what it is there for.
[[nodiscard]] inline bool works(ramie::runtime& rt) {
  return rt.run([] {
    ramie::channel<int> c(0);
    ramie::nursery n;
    n.spawn([=] { c.send(1); });
    auto two = n.spawn([] { return 2; });
    const int three = c.recv().value() + two.get();
    n.join();
    return three;
  }) == 3;
}

// For a debugger, when one of them hangs.
struct under_way {
  const char* program;
  const char* trouble;
  long k;
  bool for_good;
};
inline under_way now{};

// More often than anybody asks.
inline constexpr long never = 1L << 30;

struct one_run {
  long asked;  // how often
  bool noticed;
};

// In a runtime of its own. `for_good`: also while the runtime ends.
inline one_run run_once(const program& p, const trouble& t, long k, bool for_good) {
  now = {p.name, t.name, k, for_good};
  static const bool started = [] {
    std::thread([] {}).join();  // sanitizers start one of their own with the first
    return true;
  }();
  (void)started;
  const long threads = entries_of("/proc/self/task"), files = entries_of("/proc/self/fd");
  auto o = ramie::options();
  o.workers = p.workers;
  o.root_stack_size = 1024 * 1024;
  scene s;
  report_count reports;
  std::exception_ptr failure;
  bool worked = true;
  t.plan(k, for_good);
  try {
    ramie::runtime rt(o);
    try {
      p.run(rt, s);
    } catch (...) {
      failure = std::current_exception();
    }
    if (!for_good && k != never) {
      t.plan(0, false);
      worked = works(rt);
    }
  } catch (...) {
    failure = std::current_exception();
  }
  const long asked = t.asked();
  t.plan(0, false);
  const unsigned end = what_it_was(failure);
  failure = nullptr;
  INFO(p.name << ", " << t.name << " number " << k << (for_good ? " and all after it" : "") << " of " << asked);
  INFO("it ended with " << end << ", see ending_bits; reports: " << report_count::all.load());
  CHECK((end & (p.must_end | (k != never ? t.may_end : 0))) != 0);
  CHECK(s.wrong() == "");
  CHECK(worked);
  CHECK(s.things.alive() == 0);
  CHECK(threads_are_back_to(threads));
  CHECK(entries_of("/proc/self/fd") == files);
  return {asked, (end & p.must_end) == 0};
}

// The first fifty, then every seventh; all of them in the long version. Whether memory is kept in order is
// AddressSanitizer's to see: ThreadSanitizer, which looks for races, gets every third of the first.
inline constexpr long usual_step = thread_sanitized ? 3 : 1;
[[nodiscard]] inline std::vector<long> chosen_from(long most, long at_first) {
  const long first = scaled(50, 20), step = scaled(7, 23);
  std::vector<long> all;
  for (long k = 1; k <= most; k += large() ? 1 : k < first ? at_first : step) all.push_back(k);
  return all;
}

struct tally {
  long refused = 0;
  long noticed = 0;  // runs that ended with an error because of it
  tally& operator+=(const tally& other) {
    refused += other.refused;
    noticed += other.noticed;
    return *this;
  }
};

inline tally fail_each(const program& p, const trouble& t, long at_first = usual_step) {
  run_once(p, t, never, false);  // fills pools that outlive runtimes
  const long most = run_once(p, t, never, false).asked;
  tally all;
  for (const long k : chosen_from(most, at_first)) {
    for (const bool for_good : {false, true}) {
      all += {1, run_once(p, t, k, for_good).noticed};
    }
  }
  return all;
}

}  // namespace test::faulty
