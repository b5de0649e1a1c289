// SPDX-License-Identifier: BSL-1.0
// Fiber-local values: whose they are, and how long.
#include <memory>
#include <string>
#include <thread>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_nursery_fiber_locals {

using ramie::nursery;
using test::with_workers;

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

}  // namespace conformance_nursery_fiber_locals
