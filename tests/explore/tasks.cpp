// SPDX-License-Identifier: BSL-1.0
// Programs with children that have not started: whoever cancels or describes one meets the worker that starts it.
#include <string>

#include <ramie/channel.hpp>
#include <ramie/clock.hpp>
#include <ramie/nursery.hpp>
#include <ramie/parallel.hpp>
#include <ramie/this_fiber.hpp>

#include <ramie/platform/thread.hpp>

#include "scenarios.hpp"

namespace explore {

// A plain thread cancels a child while a worker takes it from its queue, and gives it a frame: it ends, whichever of
// the two comes first.
void task_cancelled_as_it_starts() {
  ramie::channel<int> never(0);
  ramie::nursery n;
  auto a = n.spawn([&never] { (void)never.recv(); });
  ramie::platform::thread outside([&a] { require(a.cancel(), "a cancellation came too late for a task that waits"); });
  ramie::yield();
  outside.join();
  n.join();
}

// The same, but a join calls the child under a frame that it lends to one after the other: the next one is not hit.
void task_cancelled_as_a_join_starts_it() {
  ramie::channel<int> never(0);
  bool ended = false;
  ramie::nursery n;
  n.spawn([&ended] {
    ramie::yield();
    ended = true;
  });
  auto a = n.spawn([&never] { (void)never.recv(); });
  ramie::platform::thread outside([&a] { require(a.cancel(), "a cancellation came too late for a task that waits"); });
  n.join();
  require(ended, "a task was cancelled in another's place");
  outside.join();
}

// The child ends without a wait, so that the next one begins in the frame that the cancellation was perhaps aimed at.
void task_cancelled_as_its_lent_frame_goes_on() {
  bool ended = false;
  ramie::nursery n;
  n.spawn([&ended] {
    ramie::yield();
    ended = true;
  });
  auto a = n.spawn([] { return 1; });
  ramie::platform::thread outside([&a] { (void)a.cancel(); });
  n.join();
  require(ended, "a task was cancelled in another's place");
  outside.join();
}

// The owner of a nursery asks who is left while another worker starts the child, which gives itself a name: the answer
// has the child's place, or its name, or does not know the child any more.
void straggler_starts_as_it_is_named() {
  ramie::channel<int> never(0);
  ramie::nursery n;
  n.spawn([&never] {
    ramie::this_fiber::set_name("one with a name");
    (void)never.recv();
  });
  for (const std::string& who : n.shutdown(ramie::now()).stragglers) {
    require(who == "one with a name" || who.find("tasks.cpp:") != std::string::npos,
            "a straggler has neither its name nor its place");
  }
  n.join();
}

// The second worker takes the fork, or the caller takes it back; or the caller waits for it while it ends.
void fork_is_taken_as_its_caller_comes_back() {
  int a = 0, b = 0;
  ramie::parallel_invoke([&a] { ++a; }, [&b] { ++b; });
  require(a == 1 && b == 1, "a call was lost, or made twice");
}

// The cancellation wakes the caller, by accident, while it waits for its fork, which ends for the same reason; or comes
// before one of them has begun.
void task_cancelled_as_its_fork_starts() {
  ramie::channel<int> never(0);
  ramie::nursery n;
  auto a = n.spawn([&never] {
    ramie::parallel_invoke([&never] { (void)never.recv(); }, [&never] { (void)never.recv(); });
  });
  ramie::platform::thread outside([&a] { require(a.cancel(), "a cancellation came too late for a task that waits"); });
  ramie::yield();
  outside.join();
  n.join();
}

void loop_is_divided() {
  int calls[4] = {};
  ramie::parallel_for(4, [&calls](std::size_t i) { ++calls[i]; });
  for (const int each : calls) require(each == 1, "a call was lost, or made twice");
}

}  // namespace explore
