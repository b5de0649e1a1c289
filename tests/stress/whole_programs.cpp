// SPDX-License-Identifier: BSL-1.0
// Long random programs that use everything: nurseries, channels, selects, cancellation, deadlines, shields, plain
// threads, fiber-locals, fork-join. Of support/random_program, plan.hpp makes them, and says why they can't deadlock;
// actor.hpp runs them; ledger.hpp has the laws they must keep. Afterwards nothing is left: no closure, no element, no
// value, no stack, no thread, no file.
#include <array>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <iterator>

#include <ramie/ramie.hpp>
#include <support/random_program/actor.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

#include <ramie/runtime/constants.hpp>

namespace stress_whole_programs {

using namespace std::chrono_literals;
using namespace test::random_program;

test::random_test this_test("whole programs");

struct figures {
  std::uint64_t programs = 0, fibers = 0, waits = 0, operations = 0, received = 0, cancellations = 0, timeouts = 0,
                failures = 0;
};

struct verdict {
  std::vector<std::string> complaints;
  figures sum;
};

std::size_t entries(const char* folder) {
  const std::filesystem::directory_iterator all(folder);
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

// A thread that was joined may still be listed for a moment.
bool comes_back(const char* folder, std::size_t before) {
  const auto give_up = std::chrono::steady_clock::now() + 20s;
  while (entries(folder) > before) {
    if (std::chrono::steady_clock::now() > give_up) return false;
    std::this_thread::yield();
  }
  return true;
}

void run_plan(world& w, const plan& p, ramie::manual_clock& clock) {
  ground& root = w.open(nullptr);
  std::atomic<bool> over{false};
  ramie::nursery n;
  if (p.manual_clock) {
    n.spawn([&] {
      for (; !over.load(std::memory_order_relaxed); ramie::yield()) clock.advance(10us);
    });
  }
  actor first(w, root, nullptr);
  own_number.set(first.notes().who);
  try {
    first.steps(p.steps);
  } catch (...) {
    first.notes().expect(false, "something came out of the program");
  }
  w.close(root, first.notes(), 0);
  over.store(true, std::memory_order_relaxed);
  n.join();
}

void collect_reports(const test::reports& reported, ledger& l) {
  for (const auto& r : reported.taken()) {
    try {
      if (r.failure != nullptr) std::rethrow_exception(r.failure);
      l.wrongs.push_back("LG9 reported: " + r.who + ": " + r.text);
    } catch (const mishap& m) {
      l.reported.push_back(m.number);
    } catch (const closed_with&) {  // of join_all's others, and of those who lost a race
    } catch (...) {
      l.wrongs.push_back("LG9 reported: " + r.who + ": " + r.text);
    }
  }
}

// What the watchdog tells.
struct under_way {
  std::mutex mutex;
  test::setting what;
  world* where = nullptr;
  const ramie::runtime* by = nullptr;

  void set(const test::setting& s, world* w, const ramie::runtime* rt) {
    std::lock_guard hold(mutex);
    what = s;
    where = w;
    by = rt;
  }
  void describe() {
    std::lock_guard hold(mutex);
    std::cerr << "whole programs: " << what << std::endl;
    if (by == nullptr) return;
    where->describe();
    for (int look = 0; look < 2; ++look) {  // whether anything goes round in circles
      const auto s = by->stats();
      std::cerr << "  " << s.live_workers << " workers, " << s.total.polls << " polls, " << s.total.parks << " parks, "
                << s.total.started << " of " << s.total.spawned << " fibers started, " << s.total.discarded
                << " discarded, " << s.total.times_parked << " sleeps, pressure " << s.pressure.current << std::endl;
      std::this_thread::sleep_for(1s);
    }
  }
};

verdict run_one(const test::setting& s, test::watchdog& dog, under_way& now) {
  const test::reports reported;
  const long heirlooms = heirloom::all.alive();
  const std::size_t threads = entries("/proc/self/task"), files = entries("/proc/self/fd");
  const plan p = planner(s.seed, 100 + static_cast<int>(s.seed % 5) * 200).make();
  ramie::manual_clock clock;
  verdict v;
  world w(dog);
  {
    auto o = s.options();
    if (p.manual_clock) o.clock = &clock;
    if (test::sanitized) o.stack_size = 256 * 1024;
    ramie::runtime rt(o);
    now.set(s, &w, &rt);
    rt.run([&] { run_plan(w, p, clock); });
    const auto stats = rt.stats();
    v.sum.fibers = stats.total.spawned;
    v.sum.waits = stats.total.parks;
    if (stats.stacks_in_use > stats.workers.size() * (ramie::runtime_internal::stack_cache_limit + 1)) {
      v.complaints.push_back("stacks in use: " + std::to_string(stats.stacks_in_use));
    }
    now.set(s, nullptr, nullptr);
  }  // and the runtime counts its frames
  ledger l = w.collect();
  collect_reports(reported, l);
  for (auto& text : audit(l)) v.complaints.push_back(std::move(text));
  if (w.objects.alive() != 0) v.complaints.push_back("objects alive: " + std::to_string(w.objects.alive()));
  if (heirloom::all.alive() != heirlooms) v.complaints.push_back("fiber-local values are left");
  if (!comes_back("/proc/self/task", threads)) v.complaints.push_back("threads are left");
  if (!comes_back("/proc/self/fd", files)) v.complaints.push_back("files are left");
  v.sum.programs = 1;
  v.sum.operations = static_cast<std::uint64_t>(w.operations());
  v.sum.received = l.receipts.size();
  v.sum.timeouts = static_cast<std::uint64_t>(w.timeouts());
  v.sum.cancellations = l.sightings.size();
  v.sum.failures = l.thrown.size();
  return v;
}

void add(figures& all, const figures& one) {
  all.programs += one.programs;
  all.fibers += one.fibers;
  all.waits += one.waits;
  all.operations += one.operations;
  all.received += one.received;
  all.cancellations += one.cancellations;
  all.timeouts += one.timeouts;
  all.failures += one.failures;
}

std::string show(unsigned workers, const figures& f) {
  return std::to_string(workers) + " workers: " + std::to_string(f.programs) + " programs, " +
         std::to_string(f.fibers) + " fibers, " + std::to_string(f.waits) + " waits, " + std::to_string(f.operations) +
         " channel operations, " + std::to_string(f.received) + " letters received, " +
         std::to_string(f.cancellations) + " cancellations, " + std::to_string(f.timeouts) + " timeouts, " +
         std::to_string(f.failures) + " failures";
}

TEST_CASE("random programs of everything keep the laws and leave nothing behind", "[stress][nursery][channel]") {
  under_way now;
  test::watchdog dog([&now] { now.describe(); });
  std::array<figures, 9> sums{};
  this_test.for_each_seed(test::scaled(16, 5), 500, [&](const test::setting& s) {
    const verdict v = run_one(s, dog, now);
    if (!v.complaints.empty()) {
      std::string text;
      for (const auto& each : v.complaints) text += "\n  " + each;
      INFO(s << text);
      REQUIRE(v.complaints.empty());
    }
    add(sums[s.workers], v.sum);
  });
  std::uint64_t waits = 0;
  for (const unsigned workers : {1u, 2u, 4u, 8u}) {
    waits += sums[workers].waits;
    if (std::getenv("RAMIE_STRESS_MINUTES") != nullptr) std::printf("%s\n", show(workers, sums[workers]).c_str());
  }
  std::fflush(stdout);
  CHECK(waits > 20 * this_test.programs());
}

}  // namespace stress_whole_programs
