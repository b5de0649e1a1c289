// SPDX-License-Identifier: BSL-1.0
// What builds with checks, and some all builds, do not put up with: a message that says who and what to do.
#include <csignal>
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
  dies_saying(
      [] {
        in_fiber([] {
          ramie::nursery n;
          auto* const s = new ramie::semaphore(0);
          n.spawn([=] { s->acquire(); });
          ramie::yield();
          delete s;
        });
      },
      "destroys a ramie::semaphore that others wait for");
  dies_saying(
      [] {
        in_fiber([] {
          ramie::nursery n;
          auto* const e = new ramie::event;
          n.spawn([=] { e->wait(); });
          ramie::yield();
          delete e;
        });
      },
      "destroys a ramie::event that others wait for");
}

}  // namespace conformance_sync_misuse
