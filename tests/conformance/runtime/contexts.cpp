// SPDX-License-Identifier: BSL-1.0
// What a switch of stacks takes along and what not, whichever jump makes it.
#include <unwind.h>

#include <atomic>
#include <cfenv>
#include <vector>

#include <ramie/platform/context.hpp>
#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_contexts {

using test::fiber_group;
using test::with_workers;

ramie::options one_worker() {
  auto o = with_workers(1);
  o.elastic = false;
  return o;
}

// K20
TEST_CASE("a fiber has a floating-point environment of its own where the jump carries it", "[conformance][context]") {
  if (!ramie::platform::jump_carries_floats) LEFT_OUT("this build's jump does not carry it");
  std::vector<int> others;
  int mine = -1;
  ramie::runtime rt(one_worker());
  rt.run([&] {
    fiber_group c(rt);
    c.spawn([&] {
      std::fesetround(FE_UPWARD);
      ramie::yield();  // this makes the context of a fresh stack
      mine = std::fegetround();
      std::fesetround(FE_TONEAREST);
    });
    for (int i = 0; i < 3; ++i) {
      c.spawn([&] {
        others.push_back(std::fegetround());
        ramie::yield();
        others.push_back(std::fegetround());
      });
    }
    ramie::yield();
    others.push_back(std::fegetround());
    c.join();
  });
  CHECK(mine == FE_UPWARD);
  CHECK(others == std::vector<int>(7, FE_TONEAREST));
}

// The frames above the caller. -1: the walk did not come to an end.
int depth() {
  struct walk {
    int frames = 0;
  } all;
  const auto end = _Unwind_Backtrace(
      [](_Unwind_Context* at, void* of) {
        if (_Unwind_GetIP(at) == 0) return _URC_NO_REASON;
        return ++static_cast<walk*>(of)->frames < 200 ? _URC_NO_REASON : _URC_NORMAL_STOP;
      },
      &all);
  return end == _URC_END_OF_STACK ? all.frames : -1;
}

// K35
TEST_CASE("a backtrace in a fiber ends, on a worker's first stack and on others", "[conformance][context]") {
  std::vector<int> found;
  ramie::runtime rt(one_worker());
  rt.run([&] {
    fiber_group c(rt);
    found.push_back(depth());
    for (int i = 0; i < 3; ++i) {
      c.spawn([&] {
        found.push_back(depth());
        ramie::yield();
        found.push_back(depth());
      });
    }
    c.spawn([&] { found.push_back(depth()); }, 256 * 1024);
    ramie::yield();
    c.join();
  });
  CHECK(found.size() == 8);
  for (const int frames : found) {
    CHECK(frames > 2);
    CHECK(frames < 100);
  }
}

}  // namespace conformance_contexts
