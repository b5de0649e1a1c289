// SPDX-License-Identifier: BSL-1.0
// What builds with checks, and some all builds, do not put up with: a message that says who and what to do.
#include <csignal>
#include <cstdlib>
#include <mutex>
#include <string>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/crew.hpp>
#include <support/test.hpp>

namespace conformance_sync_misuse {

using namespace std::chrono_literals;
using test::dies_saying;

template <class F>
void in_fiber(F f) {
  ramie::run(test::with_workers(1), f);
}

TEST_CASE("counting beyond what there is ends the program", "[conformance][sync][death]") {
  dies_saying([] { ramie::latch(1).count_down(2); }, "counts a ramie::latch down below zero");
  dies_saying([] { ramie::semaphore(1).release(ramie::semaphore::max()); }, "more permits than");
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

TEST_CASE("builds with checks notice a lock or signal that is destroyed too early",
          "[conformance][sync][death][checks]") {
  if (!ramie::platform::debug_checks) LEFT_OUT("only builds with checks look");
  dies_saying(
      [] {
        ramie::mutex m;
        m.lock();
      },
      "destroys a locked ramie::mutex");
  dies_saying(
      [] {
        ramie::shared_mutex m;
        m.lock_shared();
      },
      "destroys a locked ramie::shared_mutex");
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
              "destroys a ramie::barrier that others wait at");
  dies_saying([] { destroyed_beneath([] { return new ramie::notify; }, [](auto& n) { n.wait(); }); },
              "destroys a ramie::notify that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::condition_variable; }, wait_with_a_lock); },
              "destroys a ramie::condition_variable that others wait for");
  dies_saying([] { destroyed_beneath([] { return new ramie::once_flag; }, initialise_for_ever); },
              "destroys a ramie::once_flag or once_cell that somebody is just initialising");
  dies_saying(
      [] {
        destroyed_beneath([] { return new ramie::once_cell<int>; },
                          [](auto& c) { (void)c.get_or_init([] { return ramie::event().wait(), 1; }); });
      },
      "destroys a ramie::once_flag or once_cell that somebody is just initialising");
}

}  // namespace conformance_sync_misuse
