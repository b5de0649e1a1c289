// SPDX-License-Identifier: BSL-1.0
// Nurseries own: closures, results, memory; and who may do what with them.
#include <array>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_owning {

using ramie::nursery;
using ramie::usage_error;
using test::dies_saying;
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
    auto expiring = n.spawn([p = std::make_unique<int>(11)]() mutable -> std::unique_ptr<int>&& { return std::move(p); });
    auto expiring_argument = n.spawn([](std::string&& s) -> std::string&& { return std::move(s); }, std::string("gone"));
    auto nothing = n.spawn([] {});
    auto constant = n.spawn([]() -> const std::string { return "const"; });
    static_assert(std::is_same_v<decltype(reference), ramie::task<int&>>);
    static_assert(std::is_same_v<decltype(nothing), ramie::task<void>>);
    static_assert(std::is_same_v<decltype(expiring), ramie::task<std::unique_ptr<int>>>);
    nothing.get();
    nothing.get();
    CHECK(number.get() == 42);
    n.join();
    CHECK(text.get() == "ramie");
    CHECK(*owner.get() == 7);
    CHECK(&reference.get() == &target);
    CHECK(*moved.get() == 9);
    CHECK(*expiring.get() == 11);
    CHECK(expiring_argument.get() == "gone");
    std::string kept = "kept";
    auto [gathered] = ramie::join_all([&kept]() -> std::string&& { return std::move(kept); });
    static_assert(std::is_same_v<decltype(gathered), std::string>);
    CHECK(gathered == "kept");
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
  for (const std::string& text : said) CHECK((text.starts_with("ramie: nursery::") || text.starts_with("ramie: task::")));
  CHECK(said[0].find("outside its tree") != std::string::npos);
  CHECK(said[1].find("by another fiber or thread") != std::string::npos);
  CHECK(said[2].find("outside its tree") != std::string::npos);
  CHECK((said[3] + said[4]).find("wait for itself") != std::string::npos);
  CHECK((said[3] + said[4]).find("outside its tree") != std::string::npos);
  CHECK(said[5].find("after join()") != std::string::npos);
  CHECK(said[6].find("after join()") != std::string::npos);
  CHECK(said[7].find("after join()") != std::string::npos);
  CHECK(said[8].find("no child behind this handle") != std::string::npos);
}

// It fits into registers, and is not copied.
TEST_CASE("a small closure that can only be moved is spawned", "[conformance][nursery]") {
  struct only_moved {
    explicit only_moved(int v) : value(v) {}
    only_moved(only_moved&&) = default;
    only_moved& operator=(only_moved&&) = default;
    only_moved(const only_moved&) = delete;
    int value;
  };
  auto f = [x = only_moved(3)] { return x.value; };
  static_assert(std::is_trivially_copyable_v<decltype(f)>);
  CHECK(ramie::run([&] {
          ramie::nursery n;
          auto t = n.spawn(std::move(f));
          n.join();
          return t.get();
        }) == 3);
}

TEST_CASE("a closure whose move throws is not spawned", "[conformance][nursery]") {
  struct throwing {
    bool armed = false;
    throwing() = default;
    throwing(throwing&& other) : armed(other.armed) {
      if (armed) throw std::runtime_error("dropped");
    }
    void operator()() const {}
  };
  ramie::run(with_workers(1), [] {
    nursery n;
    throwing f;
    f.armed = true;
    CHECK_THROWS_AS(n.spawn(std::move(f)), std::runtime_error);
    CHECK(n.live_fibers() == 0);
    n.spawn(throwing());
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
  CHECK(who.find("nursery/owning.cpp:") != std::string::npos);
}

// N1
TEST_CASE("a nursery destroyed by another fiber ends the program", "[conformance][nursery][death]") {
  dies_saying(
      [] {
        ramie::run(with_workers(1), [] {
          auto mine = std::make_unique<ramie::nursery>();
          ramie::nursery other;
          other.spawn([&] { mine.reset(); });
          other.join();
        });
      },
      "was not destroyed by the");
}

}  // namespace conformance_nursery_owning
