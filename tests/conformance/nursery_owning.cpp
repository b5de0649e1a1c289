// SPDX-License-Identifier: BSL-1.0
// Nurseries own: closures, results, memory; and who may do what with them.
#include <sys/resource.h>

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/allocations.hpp>
#include <support/census.hpp>
#include <support/child.hpp>
#include <support/crew.hpp>
#include <support/reports.hpp>
#include <support/test.hpp>

namespace conformance_nursery_owning {

using ramie::nursery;
using ramie::usage_error;
using test::with_workers;

TEST_CASE("a nursery waits for all its children", "[conformance][nursery]") {
  const int children = test::scaled(5'000, 500);
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> ran{0};
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < children; ++i) {
        n.spawn([&, i] {
          if (i % 3 == 0) ramie::yield();
          ran.fetch_add(1);
        });
      }
      n.join();
      if (n.live_fibers() != 0) ran.store(-1);
    });
    CHECK(ran.load() == children);
  }
}

TEST_CASE("results: values, references, move-only, void", "[conformance][nursery]") {
  ramie::run(with_workers(2), [] {
    static int target = 0;
    nursery n;
    auto number = n.spawn([] { return 42; });
    auto text = n.spawn([](std::string a, const std::string& b) { return a + b; }, std::string("ra"), "mie");
    auto owner = n.spawn([](std::unique_ptr<int> p) { return p; }, std::make_unique<int>(7));
    auto reference = n.spawn([]() -> int& { return target; });
    auto moved = n.spawn([p = std::make_unique<int>(9)]() mutable { return std::move(p); });
    auto nothing = n.spawn([] {});
    auto constant = n.spawn([]() -> const std::string { return "const"; });
    static_assert(std::is_same_v<decltype(reference), ramie::task<int&>>);
    static_assert(std::is_same_v<decltype(nothing), ramie::task<void>>);
    nothing.get();
    nothing.get();
    CHECK(number.get() == 42);
    n.join();
    CHECK(text.get() == "ramie");
    CHECK(*owner.get() == 7);
    CHECK(&reference.get() == &target);
    CHECK(*moved.get() == 9);
    CHECK(constant.get() == "const");
    CHECK_THROWS_AS(number.get(), usage_error);
  });
}

TEST_CASE("callables of any size and alignment, functions, members", "[conformance][nursery]") {
  struct alignas(256) wide {
    std::array<char, 300> bytes{};
    const wide* self = this;
    wide() = default;
    wide(wide&& other) noexcept : bytes(other.bytes) {}
    bool operator()() const { return reinterpret_cast<std::uintptr_t>(this) % 256 == 0 && self == this; }
  };
  struct person {
    int age = 30;
    int older(int by) const { return age + by; }
  };
  static int called;
  called = 0;
  ramie::run(with_workers(1), [] {
    nursery n;
    auto aligned = n.spawn(wide());
    std::array<char, 5'000> large{};
    large[4'999] = 'x';
    auto big = n.spawn([large] { return large[4'999]; });
    n.spawn(
        +[](int by) { called += by; }, 3);
    const person p;
    auto member = n.spawn(&person::older, p, 12);
    int written = 0;
    n.spawn([](int& into) { into = 5; }, std::ref(written));
    auto erased = n.spawn(std::function<int()>([] { return 1; }));
    const auto kept = [] { return 2; };
    auto copied = n.spawn(kept);
    n.join();
    CHECK(aligned.get());
    CHECK(big.get() == 'x');
    CHECK(called == 3);
    CHECK(member.get() == 42);
    CHECK(written == 5);
    CHECK(erased.get() + copied.get() == 3);
  });
}

TEST_CASE("a closure is destroyed when its fiber ends, before the count drops", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u}) {
    test::census closures;
    long left_when_seen_ended = -1, left_after_get = -1;
    ramie::run(with_workers(workers), [&] {
      nursery n;
      auto t = n.spawn([c = test::citizen(closures)] { ramie::yield(); });
      while (n.live_fibers() != 0) ramie::yield();
      left_when_seen_ended = closures.alive();
      auto u = n.spawn([c = test::citizen(closures)] { ramie::yield(); });
      u.get();
      left_after_get = closures.alive();
      n.join();
    });
    CHECK(left_when_seen_ended == 0);
    CHECK(left_after_get == 0);
    CHECK(closures.made.load() == 2);
  }
}

TEST_CASE("results are destroyed once, whoever lets go last", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    test::census results;
    ramie::run(with_workers(workers), [&] {
      for (int round = 0; round < test::scaled(200, 20); ++round) {
        nursery n;
        std::vector<ramie::task<test::citizen>> kept;
        for (int i = 0; i < 20; ++i) {
          auto t = n.spawn([&, i] {
            if (i % 2 == 0) ramie::yield();
            return test::citizen(results);
          });
          if (i % 3 == 0) kept.push_back(std::move(t));  // others are dropped before, while or after they run
          if (i % 5 == 0) ramie::yield();
        }
        if (round % 2 == 0) kept.clear();
        n.join();
        if (round % 4 == 1) (void)kept.front().get();
      }
    });
    CHECK(results.made.load() > 0);
    CHECK(results.alive() == 0);
  }
}

TEST_CASE("scope-lifetime objects die after the children, youngest first", "[conformance][nursery]") {
  test::journal<int> gone;
  struct thing {
    test::journal<int>& log;
    int number;
    thing(test::journal<int>& l, int n) : log(l), number(n) {}
    ~thing() { log.add(number); }
  };
  ramie::run(with_workers(2), [&] {
    nursery n;
    auto& first = n.make<thing>(gone, 1);
    n.make<std::array<char, 4'000>>();
    n.make<thing>(gone, 2);
    n.spawn([&] {
      n.make<thing>(gone, 3);
      ramie::yield();
      gone.add(first.number * 100);
    });
    n.join();
    gone.add(0);
  });
  CHECK(gone.entries() == std::vector<int>{100, 0, 3, 2, 1});
}

TEST_CASE("an ending nursery is closed for the destructors of what it owns", "[conformance][nursery][misuse]") {
  int refused = 0;
  bool waited = false;
  ramie::run(with_workers(2), [&] {
    struct late {
      nursery& home;
      int& count;
      bool& done;
      late(nursery& n, int& c, bool& d) : home(n), count(c), done(d) {}
      ~late() {
        try {
          home.spawn([] {});
        } catch (const usage_error&) {
          ++count;
        }
        try {
          home.make<int>(1);
        } catch (const usage_error&) {
          ++count;
        }
        nursery of_its_own;
        of_its_own.spawn([] { ramie::yield(); });
        of_its_own.join();
        done = true;
      }
    };
    {
      nursery n;
      n.make<late>(n, refused, waited);
      n.spawn([] { ramie::yield(); });
    }
    nursery next;
    next.spawn([] {});
    next.join();
  });
  CHECK(refused == 2);
  CHECK(waited);
}

TEST_CASE("scope-lifetime objects may make others, wait, or fail to be made", "[conformance][nursery]") {
  test::census people;
  int value = 0;
  ramie::run(with_workers(2), [&] {
    struct parent {
      int& child;
      parent(nursery& n, int v) : child(n.make<int>(v)) { ramie::yield(); }
    };
    struct stillborn {
      test::citizen counted;
      explicit stillborn(test::census& c) : counted(c) { throw std::runtime_error("no"); }
    };
    nursery n;
    n.spawn([&] { n.make<test::citizen>(people); });
    value = n.make<parent>(n, 5).child;
    CHECK_THROWS_AS(n.make<stillborn>(people), std::runtime_error);
    n.join();
  });
  CHECK(value == 5);
  CHECK(people.made.load() == 2);
  CHECK(people.alive() == 0);
}

TEST_CASE("descendants may spawn into an outer nursery, also while it is joined", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> ran{0};
    ramie::run(with_workers(workers), [&] {
      nursery outer;
      outer.spawn([&] {
        nursery inner;
        for (int i = 0; i < 50; ++i) {
          inner.spawn([&] {
            outer.spawn([&] {
              ramie::yield();
              outer.spawn([&] { ran.fetch_add(1); });
            });
          });
        }
        inner.join();
      });
      outer.join();
    });
    CHECK(ran.load() == 50);
  }
}

TEST_CASE("misuse of a nursery is told, and nothing happens", "[conformance][nursery][misuse]") {
  CHECK_THROWS_AS(nursery(), usage_error);
  static_assert(!std::is_move_constructible_v<nursery> && !std::is_copy_constructible_v<nursery>);
  static_assert(!std::is_copy_constructible_v<ramie::task<int>> &&
                std::is_nothrow_move_constructible_v<ramie::task<int>>);
  std::vector<std::string> said;
  std::mutex lock;
  const auto expect_refusal = [&](auto&& misuse) {
    std::string text = "nothing";
    try {
      misuse();
    } catch (const usage_error& e) {
      text = e.what();
    }
    std::lock_guard hold(lock);
    said.push_back(text);
  };
  ramie::run(with_workers(2), [&] {
    nursery n;
    std::thread([&] {
      expect_refusal([&] { n.spawn([] {}); });
      expect_refusal([&] { n.join(); });
      expect_refusal([&] { n.make<int>(1); });
    }).join();
    n.spawn([&] { expect_refusal([&] { n.join(); }); });
    {
      nursery other;
      other.spawn([&] {
        nursery inner;
        // `other` is outside `inner`'s tree.
        n.spawn([&] { expect_refusal([&] { inner.spawn([] {}); }); }).get();
        inner.join();
      });
      other.join();
    }
    n.join();
    expect_refusal([&] { n.spawn([] {}); });
    expect_refusal([&] { n.join(); });
    expect_refusal([&] { n.spawn({.stack_size = 7}, [] {}); });
    ramie::task<int> nobody;
    expect_refusal([&] { nobody.get(); });
  });
  REQUIRE(said.size() == 9);
  CHECK(said[0].find("outside its tree") != std::string::npos);
  CHECK(said[1].find("by another fiber or thread") != std::string::npos);
  CHECK(said[2].find("outside its tree") != std::string::npos);
  CHECK((said[3] + said[4]).find("wait for itself") != std::string::npos);
  CHECK((said[3] + said[4]).find("outside its tree") != std::string::npos);
  CHECK(said[5].find("after its join()") != std::string::npos);
  CHECK(said[6].find("after join()") != std::string::npos);
  CHECK(said[7].find("after its join()") != std::string::npos);
  CHECK(said[8].find("without a child") != std::string::npos);
}

TEST_CASE("a task used after its nursery has died is a detected misuse", "[conformance][nursery][misuse]") {
  ramie::runtime rt(with_workers(1));
  ramie::task<std::string> orphan;
  rt.run([&] {
    {
      nursery n;
      orphan = n.spawn([] { return std::string("too late"); });
      n.join();
    }
    CHECK_THROWS_AS(orphan.get(), usage_error);
    nursery again;  // very likely in the same memory
    auto fresh = again.spawn([] { return std::string("fresh"); });
    CHECK_THROWS_AS(orphan.get(), usage_error);
    CHECK_THROWS_AS(orphan.done(), usage_error);
    orphan.reset();
    CHECK(fresh.get() == "fresh");
    again.join();
    orphan = std::move(fresh);
  });
  CHECK_THROWS_AS(orphan.get(), usage_error);
}

TEST_CASE("a handle may be dropped by anybody at any time", "[conformance][nursery]") {
  test::census results;
  for (int round = 0; round < test::scaled(200, 20); ++round) {
    std::atomic<int> stage{0};
    ramie::task<test::citizen> handle;
    std::thread outside([&] {
      while (stage.load() == 0) std::this_thread::yield();
      handle.reset();
    });
    ramie::run(with_workers(2), [&] {
      nursery n;
      handle = n.spawn([&] {
        ramie::yield();
        return test::citizen(results);
      });
      stage.store(1);
      n.join();
    });
    outside.join();
  }
  CHECK(results.alive() == 0);
}

TEST_CASE("a plain thread may wait for a task", "[conformance][nursery]") {
  ramie::run(with_workers(2), [] {
    test::detail::gate door;
    nursery n;
    auto t = n.spawn([&] {
      test::wait_at(door);
      return 5;
    });
    std::atomic<int> got{0};
    std::thread outside([&] { got.store(t.get()); });
    while (!door.is_open()) door.open();
    while (got.load() == 0) ramie::yield();
    n.join();
    outside.join();
    CHECK(got.load() == 5);
  });
}

TEST_CASE("any number may wait for one task", "[conformance][nursery]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> seen{0};
    ramie::run(with_workers(workers), [&] {
      test::detail::gate door;
      nursery n;
      auto awaited = n.spawn([&] { test::wait_at(door); });
      nursery waiting;
      for (int i = 0; i < 20; ++i) {
        waiting.spawn([&] {
          awaited.wait();
          seen.fetch_add(1);
        });
      }
      waiting.spawn([&] {
        for (int i = 0; i < 10; ++i) ramie::yield();
        door.open();
      });
      waiting.join();
      awaited.wait();
      n.join();
    });
    CHECK(seen.load() == 20);
  }
}

long peak_kilobytes() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

TEST_CASE("spawning for ever into one nursery stays flat in memory", "[conformance][nursery][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  const long total = test::large() ? 10'000'000 : 1'000'000;
  struct accounts {
    long before, after;
  };
  const auto measure = [total](bool by_descendant, bool large_closures) {
    accounts a{};
    ramie::run(with_workers(2), [&] {
      nursery n;
      const auto accept = [&n, total, large_closures, &a] {
        std::array<char, 900> weight{};
        for (long i = 0; i < total; ++i) {
          if (large_closures && i % 16 == 0) {
            n.spawn([weight] { (void)weight; });
          } else {
            n.spawn([] {});
          }
          if (i % 64 == 0) ramie::yield();
          if (i == total / 10) a.before = peak_kilobytes();
          while (n.live_fibers() > 10'000) ramie::yield();
        }
        a.after = peak_kilobytes();
      };
      if (by_descendant) {
        n.spawn(accept);
      } else {
        accept();
      }
      n.join();
    });
    return a;
  };
  for (const bool by_descendant : {false, true}) {
    for (const bool large_closures : {false, true}) {
      const accounts a = measure(by_descendant, large_closures);
      INFO(by_descendant << large_closures << ": " << a.before << " KB after a tenth, " << a.after << " KB at the end");
      CHECK(a.after - a.before < 16 * 1024);
    }
  }
}

TEST_CASE("a nursery with a few small children allocates nothing", "[conformance][nursery][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  std::uint64_t allocated = 99;
  ramie::run(with_workers(1), [&] {
    const auto round = [] {
      nursery n;
      int sum = 0;
      for (int i = 0; i < 4; ++i) n.spawn([&sum, i] { sum += i; });
      auto t = n.spawn([a = 1L, b = 2L, c = 3L, d = 4L, e = 5L, f = 6L] { return a + b + c + d + e + f; });
      n.join();
      return sum + t.get();
    };
    for (int i = 0; i < 100; ++i) (void)round();
    const auto before = test::allocations();
    for (int i = 0; i < 1'000; ++i) (void)round();
    allocated = test::allocations() - before;
  });
  CHECK(allocated == 0);
}

// Every k-th allocation fails once, for all k: whatever was spawned ends, nothing leaks, the nursery goes on.
TEST_CASE("out of memory halfway through a spawn loses nothing", "[conformance][nursery][memory]") {
  if (test::sanitized || test::under_valgrind()) LEFT_OUT("sanitizers and valgrind allocate memory themselves");
  int failures = 0;
  for (int k = 1; k < 60; ++k) {
    test::census closures;
    std::atomic<int> ran{0};
    struct {
      long spawned = 0;
      bool failed = false;
    } seen;
    ramie::run(with_workers(1), [&] {
      nursery n;
      test::fail_allocation(k);
      try {
        for (int i = 0; i < 3'000; ++i) {
          n.spawn({.name = i % 100 == 0 ? "one with a name longer than a small string" : ""},
                  [&ran, c = test::citizen(closures)] { ran.fetch_add(1); });
          ++seen.spawned;
        }
        n.make<std::array<char, 3'000>>();
      } catch (const std::bad_alloc&) {
        seen.failed = true;
      }
      test::fail_allocation(0);
      failures += seen.failed;
      if (seen.failed) {
        n.spawn([&ran] { ran.fetch_add(1); });  // it still works
        ++seen.spawned;
      }
      n.join();
    });
    CHECK(ran.load() == seen.spawned);
    CHECK(closures.alive() == 0);
  }
  CHECK(failures > 10);
}

TEST_CASE("a closure whose move throws is not spawned", "[conformance][nursery]") {
  struct fragile {
    bool armed = false;
    fragile() = default;
    fragile(fragile&& other) : armed(other.armed) {
      if (armed) throw std::runtime_error("dropped");
    }
    void operator()() const {}
  };
  ramie::run(with_workers(1), [] {
    nursery n;
    fragile f;
    f.armed = true;
    CHECK_THROWS_AS(n.spawn(std::move(f)), std::runtime_error);
    CHECK(n.live_fibers() == 0);
    n.spawn(fragile());
    n.join();
  });
}

TEST_CASE("a closure may wait while it is being moved into the nursery", "[conformance][nursery]") {
  struct slow_to_move {
    std::atomic<int>& ran;
    explicit slow_to_move(std::atomic<int>& r) : ran(r) {}
    slow_to_move(slow_to_move&& other) : ran(other.ran) {
      for (int i = 0; i < 5; ++i) ramie::yield();
    }
    void operator()() const { ran.fetch_add(1); }
  };
  for (const bool chaos : {false, true}) {
    auto o = with_workers(4);
    if (chaos) o.chaos = ramie::chaos_mode{7};
    std::atomic<int> ran{0};
    ramie::run(o, [&] {
      nursery n;
      for (int i = 0; i < 50; ++i) n.spawn(slow_to_move(ran));
      n.join();
    });
    CHECK(ran.load() == 50);
  }
}

TEST_CASE("names and spawn sites are in messages", "[conformance][nursery]") {
  std::string name, failure_text, who;
  ramie::run(with_workers(1), [&] {
    nursery n;
    name = n.spawn({.name = "weaver"}, [] { return ramie::this_fiber::name(); }).get();
    n.spawn([] {
      ramie::this_fiber::set_name("dyer");
      throw std::runtime_error("wrong colour");
    });
    try {
      n.join();
    } catch (const std::runtime_error& e) {
      failure_text = e.what();
    }
    who = n.failures().at(0).who;
  });
  CHECK(name == "weaver");
  CHECK(failure_text == "wrong colour");
  CHECK(who.find("'dyer'") != std::string::npos);
  CHECK(who.find("nursery_owning.cpp:") != std::string::npos);
}

TEST_CASE("fiber-local values belong to the fiber, wherever it runs", "[conformance][nursery]") {
  static ramie::fiber_local<int> own;
  static ramie::fiber_local<std::string, ramie::inherit::yes> heirloom;
  for (const bool chaos : {false, true}) {
    auto o = with_workers(4);
    if (chaos) o.chaos = ramie::chaos_mode{3};
    std::atomic<int> wrong{0};
    ramie::run(o, [&] {
      heirloom.set("grandmother's");
      own.set(-1);
      nursery n;
      for (int i = 0; i < 100; ++i) {
        n.spawn([&, i] {
          if (*heirloom != "grandmother's" || own.find() != nullptr) wrong.fetch_add(1);
          own.set(i);
          *heirloom += std::to_string(i);
          for (int k = 0; k < 10; ++k) ramie::yield();
          if (*own != i || *heirloom != "grandmother's" + std::to_string(i)) wrong.fetch_add(1);
          nursery inner;  // its children run in place, above this fiber
          inner.spawn([&, i] {
            if (own.find() != nullptr || *heirloom != "grandmother's" + std::to_string(i)) wrong.fetch_add(1);
            own.set(1'000);
          });
          inner.join();
          if (*own != i) wrong.fetch_add(1);
        });
      }
      n.join();
      if (*heirloom != "grandmother's" || *own != -1) wrong.fetch_add(1);
    });
    CHECK(wrong.load() == 0);
  }
  CHECK(own.get() == 0);  // this thread's
  own.set(4);
  std::thread([&] { CHECK(own.find() == nullptr); }).join();
  CHECK(*own == 4);
}

TEST_CASE("fiber-local values are destroyed when their fiber ends", "[conformance][nursery]") {
  static ramie::fiber_local<std::shared_ptr<test::citizen>, ramie::inherit::yes> held;
  test::census people;
  ramie::run(with_workers(2), [&] {
    nursery n;
    n.spawn([&] {
      held.set(std::make_shared<test::citizen>(people));
      nursery inner;
      for (int i = 0; i < 10; ++i) inner.spawn([] { ramie::yield(); });
      inner.spawn([&] { inner.cancel(); });
      for (int i = 0; i < 10; ++i) inner.spawn([] { ramie::yield(); });
      inner.join();
    });
    n.join();
  });
  CHECK(people.made.load() == 1);
  CHECK(people.alive() == 0);
}

}  // namespace conformance_nursery_owning
