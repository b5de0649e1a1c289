// SPDX-License-Identifier: BSL-1.0
// What builds with checks, and some all builds, do not put up with: a message that says who and what to do.
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_sync_misuse {

using namespace std::chrono_literals;
using test::dies_saying;

template <class F>
void in_fiber(F f) {
  ramie::run(test::with_workers(1), f);
}

// What a usage_error says, or nothing.
template <class F>
std::string refusal(F f) {
  try {
    f();
  } catch (const ramie::usage_error& e) {
    return e.what();
  }
  return "";
}

TEST_CASE("counts that can't be are refused, and change nothing", "[conformance][sync][misuse]") {
  const auto too_many = ramie::semaphore::max() + 1;
  ramie::semaphore s(1);
  ramie::latch l(1);
  ramie::barrier b(1);
  CHECK(refusal([] { ramie::semaphore(-1); }) ==
        "ramie: semaphore::semaphore: a count of -1. A number of permits is 0 or more, and at most semaphore::max().");
  CHECK_THROWS_AS(ramie::semaphore(~std::uint64_t{0}), ramie::usage_error);
  for (const std::int64_t count : {std::int64_t{-1}, too_many, INT64_MIN, INT64_MAX}) {
    const auto of_permits = ": a count of " + std::to_string(count) + ". A number of permits is 0 or more";
    CHECK(refusal([&] { s.acquire(count); }).starts_with("ramie: semaphore::acquire" + of_permits));
    CHECK(refusal([&] { (void)s.try_acquire(count); }).starts_with("ramie: semaphore::try_acquire" + of_permits));
    CHECK(refusal([&] { (void)s.try_acquire_for(1h, count); }).starts_with("ramie: semaphore::acquire" + of_permits));
    CHECK(refusal([&] { s.release(count); }).starts_with("ramie: semaphore::release" + of_permits));
    CHECK(refusal([&] { (void)ramie::on_acquire(s, count, [] {}); }).starts_with("ramie: on_acquire" + of_permits));
    CHECK(refusal([&] { l.count_down(count); }).starts_with("ramie: latch::count_down: a count of "));
    CHECK(refusal([&] { l.arrive_and_wait(count); }).starts_with("ramie: latch::count_down: a count of "));
    CHECK(refusal([&] { (void)ramie::latch(count); }).starts_with("ramie: latch::latch: a count of "));
    CHECK(refusal([&] { (void)ramie::barrier(count); }).starts_with("ramie: barrier::barrier: a count of "));
  }
  CHECK(refusal([] { (void)ramie::barrier(0); }) == "ramie: barrier::barrier: a count of 0. Give at least one party.");
  CHECK(refusal([&] { s.release(ramie::semaphore::max()); }).ends_with("Release as many as were acquired."));
  CHECK(refusal([&] { l.count_down(2); }).ends_with("Make the latch with as many as will count down."));
  CHECK(s.available() == 1);
  CHECK(!l.try_wait());
  l.count_down();
  b.arrive_and_drop();
  CHECK(refusal([&] { b.arrive_and_drop(); }).starts_with("ramie: barrier::arrive_and_drop: all parties have dropped out."));
  CHECK(refusal([&] { b.wait(); }).starts_with("ramie: barrier::wait: all parties have dropped out."));
}

TEST_CASE("builds with checks notice who locks its own lock", "[conformance][sync][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  const auto twice = [] {
    ramie::mutex m;
    m.lock();
    m.lock();
  };
  dies_saying(twice, "a plain thread locks a ramie::mutex that it holds already. It is not recursive");
  dies_saying([] { in_fiber(decltype(twice){}); }, "locks a ramie::mutex that it holds already");
  dies_saying(
      [] {
        in_fiber([] {
          ramie::nursery n;
          n.spawn([] {
            ramie::shared_mutex m;
            m.lock();
            m.lock_shared();
          });
          n.join();
        });
      },
      "locks a ramie::shared_mutex that it has alone already");
  dies_saying(
      [] {
        ramie::once_flag flag;
        call_once(flag, [&] { call_once(flag, [] {}); });
      },
      "for what it is doing itself");
}

TEST_CASE("builds with checks notice who unlocks another's lock", "[conformance][sync][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  dies_saying(
      [] {
        in_fiber([] {
          ramie::mutex m;
          m.lock();
          ramie::nursery n;
          n.spawn([&] { m.unlock(); });
          n.join();
        });
      },
      "unlocks a ramie::mutex that it does not hold. Unlock it where it was locked");
  dies_saying([] { ramie::mutex().unlock(); }, "a plain thread unlocks a ramie::mutex");
  dies_saying([] { ramie::shared_mutex().unlock(); }, "that it does not have alone");
  dies_saying([] { ramie::shared_mutex().unlock_shared(); }, "that nobody shares");
}

// Ends what it made while a fiber is in use(). Whoever is not stopped by that leaves without a word.
template <class Make, class Use>
void destroyed_beneath(Make make, Use use) {
  in_fiber([=] {
    ramie::nursery n;
    auto* const it = make();
    n.spawn([=] { use(*it); });
    ramie::yield();
    delete it;
    std::_Exit(0);
  });
}
template <class Lock>
Lock* locked_by_us() {
  auto* const made = new Lock;
  made->lock();
  return made;
}
void wait_with_a_lock(ramie::condition_variable& c) {
  ramie::mutex m;
  std::unique_lock hold(m);
  c.wait(hold);
}
void initialise_for_ever(ramie::once_flag& flag) {
  call_once(flag, [] { ramie::event().wait(); });
}

TEST_CASE("builds with checks notice a lock or event that is destroyed too early",
          "[conformance][sync][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  dies_saying(
      [] {
        ramie::mutex m;
        m.lock();
      },
      "destroys a ramie::mutex that is locked");
  dies_saying(
      [] {
        ramie::shared_mutex m;
        m.lock_shared();
      },
      "destroys a ramie::shared_mutex that is locked");
  dies_saying([] { destroyed_beneath([] { return locked_by_us<ramie::mutex>(); }, [](auto& m) { m.lock(); }); },
              "destroys a ramie::mutex that others wait for");
  dies_saying([] { destroyed_beneath([] { return locked_by_us<ramie::shared_mutex>(); }, [](auto& m) { m.lock(); }); },
              "destroys a ramie::shared_mutex that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::semaphore(0); }, [](auto& s) { s.acquire(); }); },
              "destroys a ramie::semaphore that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::event; }, [](auto& e) { e.wait(); }); },
              "destroys a ramie::event that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::latch(1); }, [](auto& l) { l.wait(); }); },
              "destroys a ramie::latch that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::barrier(2); }, [](auto& b) { b.wait(); }); },
              "destroys a ramie::barrier that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::notify; }, [](auto& n) { n.wait(); }); },
              "destroys a ramie::notify that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::condition_variable; }, wait_with_a_lock); },
              "destroys a ramie::condition_variable that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::once_flag; }, initialise_for_ever); },
              "destroys a ramie::once_flag or once_cell that somebody is initialising");
  dies_saying(
      [] {
        destroyed_beneath([] { return new ramie::once_cell<int>; },
                          [](auto& c) { (void)c.get_or_init([] { return ramie::event().wait(), 1; }); });
      },
      "destroys a ramie::once_flag or once_cell that somebody is initialising");
}

}  // namespace conformance_sync_misuse
