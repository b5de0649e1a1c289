// SPDX-License-Identifier: BSL-1.0
// What waitables need of a fiber, in the model: its word, somewhere to be queued, and the loop of a wait.
#pragma once

#include <cstdint>

#include <explore/explorer.hpp>
#include <explore/model_atomic.hpp>

#include <ramie/runtime/wait.hpp>
#include "runtime/src/task/state.hpp"

namespace ramie::runtime_internal {

class fiber {
 public:
  fiber() {
    word.init_to_runnable(0);
    word.runnable_to_running();
  }

  // As wait_as_fiber does it. Returns whether the wait ended by a partner, or by publish.
  void wait(waitable& on, waiter& node) {
    node.who = this;
    while (!on.try_complete(node)) {
      node.ticket = ++ticket_;
      node.outcome = 0;
      word.running_to_parking(ticket_);
      if (!on.publish(node)) {
        (void)word.parking_to_running();
        return;
      }
      if (word.commit_park() != commit_result::must_enqueue) {
        explore::until([this] { return queued.load() != 0; });
        queued.store(0);
      }
      word.runnable_to_running();
      if (node.outcome != 0) return;
      on.unpublish(node);
    }
  }

  // A cancellation, a timer: nothing is handed over.
  void wake_by_accident(std::uint16_t ticket) {
    if (word.wake(ticket) == wake_result::must_enqueue) enqueue();
  }
  void enqueue() { explore::require(queued.exchange(1) == 0, "a fiber is queued twice"); }

  fiber_word word;
  explore::model_atomic<int> queued{0};

 private:
  std::uint16_t ticket_ = 0;
};

}  // namespace ramie::runtime_internal
