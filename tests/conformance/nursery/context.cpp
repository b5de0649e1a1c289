// SPDX-License-Identifier: BSL-1.0
// A fiber's scopes are its own: they go with it to other workers, whoever else runs there, because they are not in
// thread-local storage; and the end of a runtime reaches every fiber in every nursery (X12).
#include <atomic>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_nursery_context {

using namespace ramie::runtime_internal;
using ramie::nursery;
using test::findings;
using test::with_workers;

// Yields, and counts how often the fiber goes on elsewhere.
class hops {
 public:
  void hop() {
    const auto before = this_worker()->index;
    try {
      ramie::yield();
    } catch (...) {
      count(before);
      throw;
    }
    count(before);
  }
  [[nodiscard]] int elsewhere() const { return elsewhere_.load(); }

 private:
  void count(std::uint32_t before) { elsewhere_.fetch_add(this_worker()->index != before); }
  std::atomic<int> elsewhere_{0};
};

cancel_scope* innermost() {
  return current_fiber()->scope;
}

// Opens a nursery, wanders with it open, and has it cancelled or not. Others do the same meanwhile.
void wander(bool cancels, hops& h, findings& found) {
  cancel_scope* const outer = innermost();
  {
    nursery mine;
    cancel_scope* const own = innermost();
    EXPECT(found, own != outer, own->parent() == outer);
    h.hop();  // not cancelled, whatever becomes of the others
    EXPECT(found, innermost() == own);
    mine.spawn([&] {
      EXPECT(found, innermost() == own);
      h.hop();
      EXPECT(found, innermost() == own);
    });
    if (cancels) mine.cancel();
    bool cut = false;
    try {
      h.hop();
    } catch (const ramie::cancelled&) {
      cut = true;
    }
    EXPECT(found, cut == cancels);
    EXPECT(found, innermost() == own);
    mine.join();
  }
  EXPECT(found, innermost() == outer);
}

TEST_CASE("a fiber keeps its scopes wherever it goes on", "[conformance][nursery][chaos]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    auto o = with_workers(workers);
    o.elastic = false;
    // Fibers that come back are passed on to another worker.
    if (workers > 1) o.chaos = ramie::chaos_mode{workers, true, false, false, false, false, false};
    findings found;
    hops h;
    ramie::run(o, [&] {
      nursery all;
      for (int i = 0; i < 8; ++i) {
        all.spawn([&, i] {
          for (int round = 0; round < 20 || (workers > 1 && h.elsewhere() < 100); ++round) {
            wander((i + round) % 2 == 0, h, found);
          }
        });
      }
      all.join();
    });
    INFO("workers: " << workers);
    CHECK(found.wrong() == "");
    CHECK((workers == 1 || h.elsewhere() >= 100));
  }
}

// Nurseries inside each other, each with children that wait, that run, and that have not begun.
class estate {
 public:
  static constexpr int levels = 4, each = 3;

  explicit estate(ramie::runtime& rt) : rt_(rt) {}
  void settle(int level = 1) {
    nursery n;
    (void)n.make<test::citizen>(objects);
    nurseries_.push_back(&n);
    for (int i = 0; i < each; ++i) {
      n.spawn([this, c = test::citizen(closures)] {
        const test::citizen local(locals);
        ++begun_;
        test::wait_at(never_);
        ++went_on;
      });
      n.spawn([this, c = test::citizen(closures)] {
        const test::citizen local(locals);
        ++begun_;
        while (!let_go_) ramie::yield();
        ++went_on;
      });
    }
    if (level < levels) {
      n.spawn([this, level, c = test::citizen(closures)] {
        const test::citizen local(locals);
        settle(level + 1);
      });
    } else {
      n.spawn([this] { end(); });
    }
    n.join();
  }

  test::census closures, locals, objects;
  std::atomic<int> went_on{0}, ran{0};

 private:
  // Whoever was not reached by then goes on: a failure, and no hang.
  void end() {
    const ramie::shield until_all_is_over;
    while (begun_ != 2 * each * levels) ramie::yield();
    for (nursery* const n : nurseries_) {
      for (int i = 0; i < each; ++i) n->spawn([this, c = test::citizen(closures)] { ++ran; });
    }
    rt_.shutdown();
    for (int i = 0; i < 500; ++i) ramie::yield();
    let_go_ = true;
    never_.open();
  }

  ramie::runtime& rt_;
  std::vector<nursery*> nurseries_;
  gate never_;
  std::atomic<int> begun_{0};
  std::atomic<bool> let_go_{false};
};

TEST_CASE("shutdown unwinds every child of every nursery, whether it waits, runs or has not begun",
          "[conformance][nursery][shutdown]") {
  ramie::runtime rt(with_workers(1));  // so that who was spawned last has not begun
  estate e(rt);
  std::string how;
  try {
    rt.run([&] { e.settle(); });
  } catch (const ramie::cancelled& c) {
    how = ramie::to_string(c.kind());
  }
  constexpr int begun = 2 * estate::each * estate::levels + estate::levels - 1;
  constexpr int never_begun = estate::each * estate::levels;
  CHECK(how == "shutdown");
  CHECK(e.went_on == 0);
  CHECK(e.ran == 0);
  CHECK(e.locals.made == begun);
  CHECK(e.locals.gone == begun);
  CHECK(e.closures.made == begun + never_begun);
  CHECK(e.closures.gone == begun + never_begun);
  CHECK(e.objects.made == estate::levels);
  CHECK(e.objects.gone == estate::levels);
  CHECK(rt.stats().total.discarded == never_begun);
  CHECK(rt.stats().pressure.current == 0);
}

}  // namespace conformance_nursery_context
