// SPDX-License-Identifier: BSL-1.0
// Programs with task handles: where a handle, or whoever tells of a task's end, comes so late that the memory has
// another task in it.
#include <memory>
#include <vector>

#include <ramie/channel.hpp>
#include <ramie/nursery.hpp>
#include <ramie/select.hpp>
#include <ramie/this_fiber.hpp>

#include <ramie/platform/thread.hpp>

#include "scenarios.hpp"

namespace explore {

namespace {

// Shows whether it was destroyed.
struct result {
  explicit result(int v) : value(v) {}
  result(result&& other) noexcept : value(other.value) {}
  ~result() { value = -1; }
  int value;
};

}  // namespace

// A plain thread lets go of a task while its nursery ends, and the next nursery has the same memory: its task must not
// be taken for the one that is let go of.
void handle_dropped_as_its_nursery_ends() {
  std::unique_ptr<ramie::platform::thread> outside;
  ramie::task<result> a;
  {
    ramie::nursery n;
    a = n.spawn([] { return result(1); });
    outside = std::make_unique<ramie::platform::thread>([&a] { a.reset(); });
    n.join();
  }
  ramie::nursery again;
  auto b = again.spawn([] { return result(2); });
  again.join();
  require(b.get().value == 2, "a result was destroyed by a handle on another task");
  outside->join();
}

// A plain thread lets go of a task just as it ends: each of the two may leave the result to the other. Then whoever uses the
// block again destroys it.
void handle_dropped_as_its_task_ends() {
  static int alive = 0;
  struct counted {
    counted() { ++alive; }
    counted(counted&&) noexcept { ++alive; }
    ~counted() { --alive; }
  };
  alive = 0;
  {
    ramie::nursery n;
    const auto spawn = [&n] { return n.spawn([] { return counted(); }); };
    std::vector<ramie::task<counted>> more;
    more.push_back(spawn());
    auto a = spawn();
    ramie::platform::thread outside([&a] { a.reset(); });
    ramie::yield();
    outside.join();
    for (int i = 0; i < 4; ++i) more.push_back(spawn());  // until blocks are looked through
    n.join();
  }
  require(alive == 0, "a result was not destroyed");
}

// A plain thread cancels a task, and lets go of it, just as it ends; the next task has its block and its frame, and is not
// hit.
void task_cancelled_as_it_ends() {
  ramie::nursery n;
  auto a = n.spawn([] { return 1; });
  ramie::platform::thread outside([&a] {
    (void)a.cancel();
    a.reset();
  });
  ramie::yield();
  bool ended = false;
  auto b = n.spawn([&ended] {
    ramie::yield();
    ended = true;
  });
  b.wait();
  require(ended, "a task was cancelled in another's place");
  outside.join();
  n.join();
}

// A task is cancelled from outside while it parks: it ends, and its sibling does not.
void task_cancelled_as_it_parks() {
  ramie::channel<int> never(0), news(1);
  ramie::nursery n;
  auto a = n.spawn([&never] { (void)never.recv(); });
  auto b = n.spawn([&news] { return *news.recv(); });
  ramie::platform::thread outside([&a] { require(a.cancel(), "a cancellation came too late for a task that waits"); });
  a.wait();
  (void)news.send(2);
  require(b.get() == 2, "a sibling was cancelled");
  outside.join();
  n.join();
}

// The end of a task is told to those who waited for it. A select has, and has gone on by another case; the task is let
// go of, and the next one has its block: whoever waits for that is not told too early.
void block_used_again_while_its_end_is_told() {
  ramie::channel<int> news(0);
  ramie::nursery n;
  for (int round = 0; round < 20; ++round) {
    auto a = n.spawn([&news] { (void)news.send(1); });
    ramie::select(ramie::on_ready(a, [] {}), ramie::on_recv(news, [](std::optional<int>) {}));
    while (!a.done()) ramie::yield();
    a.reset();
    bool ended = false;
    auto b = n.spawn([&ended] {
      ramie::yield();
      ended = true;
    });
    b.wait();
    require(ended, "a wait for a task is over before the task is");
  }
  n.join();
}

}  // namespace explore
