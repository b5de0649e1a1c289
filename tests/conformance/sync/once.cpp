// SPDX-License-Identifier: BSL-1.0
// call_once and once_cell.
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/test.hpp>

namespace conformance_sync_once {

using namespace std::chrono_literals;
using ramie::call_once;
using ramie::nursery;
using ramie::once_cell;
using ramie::once_flag;
using namespace test;

constinit once_flag constant_flag;
constinit once_cell<std::string> constant_cell;

TEST_CASE("what is called once is called once, and seen by all", "[conformance][sync][once]") {
  for_all_workers([](unsigned workers) {
    for (int round = 0; round < test::scaled(50, 10); ++round) {
      once_flag flag;
      int value = 0;
      std::atomic<int> calls{0}, wrong{0};
      together(workers, 8, 2, [&](int who) {
        if (who % 2 == 0) ramie::yield();
        call_once(
            flag,
            [&](int v) {
              ramie::yield();
              value = v;
              ++calls;
            },
            5);
        if (value != 5) ++wrong;
      });
      CHECK(calls == 1);
      CHECK(wrong == 0);
    }
  });
  call_once(constant_flag, [] {});
}

TEST_CASE("a cell is empty, then there for good", "[conformance][sync][once]") {
  test::census all;
  as_thread_and_fiber([&](findings& found) {
    {
      once_cell<std::unique_ptr<test::citizen>> cell;
      EXPECT(found, cell.get() == nullptr, std::as_const(cell).get() == nullptr);
      auto& made = cell.get_or_init([&] { return std::make_unique<test::citizen>(all); });
      EXPECT(found, cell.get() == &made, all.alive() == 1);
      EXPECT(found, &cell.get_or_init([] { return nullptr; }) == &made, !cell.emplace());
    }
    EXPECT(found, all.alive() == 0);
    once_cell<std::string> text;
    EXPECT(found, text.emplace(3u, 'x'), *text.get() == "xxx");
    once_cell<int> never_made;
  });
  CHECK(constant_cell.get_or_init([] { return "first"; }) == "first");
}

TEST_CASE("an initialiser that throws lets the next one try", "[conformance][sync][once]") {
  for_all_workers([](unsigned workers) {
    once_cell<int> cell;
    std::atomic<int> tries{0}, failures{0}, wrong{0};
    together(workers, 8, 2, [&](int) {
      try {
        const int got = cell.get_or_init([&] {
          const int mine = ++tries;
          ramie::yield();
          if (mine < 4) throw std::runtime_error("not yet");
          return mine;
        });
        if (got != 4) ++wrong;
      } catch (const std::runtime_error&) {
        ++failures;
      }
    });
    CHECK(tries == 4);
    CHECK(failures == 3);
    CHECK(wrong == 0);
  });
}

TEST_CASE("an initialiser that is cancelled lets the next one try", "[conformance][sync][once][cancel]") {
  as_fiber([](findings& found, auto&) {
    once_cell<int> cell;
    ramie::event never;
    fate first = fate::running, waits = fate::running;
    nursery n;
    nursery goes;
    let_wait(goes, first, [&] { return cell.get_or_init([&] { return never.wait(), 1; }) == 1; });
    let_wait(n, waits, [&] { return cell.get_or_init([] { return 2; }) == 2; });
    EXPECT(found, first == fate::running, waits == fate::running, cell.get() == nullptr);
    goes.cancel();
    goes.join();
    n.join();
    EXPECT(found, first == fate::cut_short, waits == fate::done, *cell.get() == 2);
  });
}

TEST_CASE("a cancelled wait for an initialiser leaves it alone, and its turn to others",
          "[conformance][sync][once][cancel]") {
  as_fiber([](findings& found, auto&) {
    once_flag flag;
    ramie::event go;
    fate first = fate::running, cut = fate::running, third = fate::running;
    nursery n;
    nursery goes;
    let_wait(n, first, [&] {
      try {
        call_once(flag, [&] {
          go.wait();
          throw std::runtime_error("no");
        });
      } catch (const std::runtime_error&) {
      }
      return true;
    });
    let_wait(goes, cut, [&] { return call_once(flag, [] {}), true; });
    bool called = false;
    let_wait(n, third, [&] { return call_once(flag, [&] { called = true; }), true; });
    goes.cancel();
    goes.join();
    go.set();
    n.join();
    EXPECT(found, first == fate::done, cut == fate::cut_short, third == fate::done, called);
  });
}

}  // namespace conformance_sync_once
