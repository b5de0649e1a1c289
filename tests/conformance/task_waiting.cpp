// SPDX-License-Identifier: BSL-1.0
// Waits for a task: whoever tells of the end of a former task in the same block may come late.
#include <mutex>

#include "../../nursery/src/core.hpp"

#include <ramie/ramie.hpp>
#include <support/crew.hpp>
#include <support/test.hpp>

namespace conformance_task_waiting {

using namespace ramie::detail;
using test::with_workers;

// What the end of a task does when somebody has waited for it, here of a task that is not the one in the block any more.
void tell_late(const join_target& of) {
  auto& home = *static_cast<nursery_core*>(of.home);
  waiter* ready = nullptr;
  {
    std::lock_guard hold(home.waiters_lock);
    home.waiters.claim_if([&](const waiter& node) { return static_cast<const keyed_waiter&>(node).key == of.what; }, ready);
  }
  complete_all(ready);
}

TEST_CASE("a wait for a task ends with the task, though it is woken by mistake", "[conformance][nursery]") {
  bool early = false, by_select = false;
  int got = 0;
  ramie::run(with_workers(1), [&] {
    const ramie::channel<int> gate(0);
    ramie::nursery n;
    auto awaited = n.spawn([gate] { return *gate.recv(); });
    n.spawn([&] { by_select = ramie::select(ramie::on_join(awaited, [] {})) == 0; });
    auto getter = n.spawn([&] {
      awaited.wait();
      early = !awaited.done();
      got = awaited.get();
    });
    for (int i = 0; i < 3; ++i) {
      ramie::yield();
      tell_late(awaited.join_source());
      ramie::yield();
      early = early || getter.done() || by_select;
    }
    gate.send(7);
    n.join();
  });
  CHECK(!early);
  CHECK(by_select);
  CHECK(got == 7);
}

}  // namespace conformance_task_waiting
