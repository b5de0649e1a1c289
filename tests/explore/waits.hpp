// SPDX-License-Identifier: BSL-1.0
// What the scenarios of locks and events share: how fibers lock, and how their waits are cancelled.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <explore/explorer.hpp>
#include <explore/model_atomic.hpp>
#include "sync/src/mutex_core.hpp"

#include "fibers.hpp"

namespace explore {

using threads_of = std::vector<std::function<void()>>;

template <class Scenario, class... Args>
scenario_maker with(Args... args) {
  return [=] { return std::make_unique<Scenario>(args...); };
}

// As lock_waiting does it.
inline void lock(ramie::sync_internal::mutex_core& m, ramie::runtime_internal::fiber& self) {
  using namespace ramie::runtime_internal;
  using namespace ramie::sync_internal;
  mutex_wait on(m);
  mutex_waiter node;
  for (;;) {
    self.wait(on, node);
    if (node.outcome == 0 || mutex_word::take_turn(m, node)) return;
  }
}

// Of one wait of one fiber. It comes at any time once the fiber is listed, perhaps too late.
class cancellation {
 public:
  // The fiber. False: it has left with nothing.
  [[nodiscard]] bool wait(ramie::runtime_internal::fiber& self, ramie::runtime_internal::waitable& on, ramie::runtime_internal::waiter& node) {
    leaving_wait leaves(on, ticket_);
    self.wait(leaves, node);
    over();
    return !leaves.has_left;
  }
  // The fiber: there is nothing to cancel any more.
  void over() {
    if (ticket_.load() == none) ticket_.store(too_late);
  }
  // Somebody else.
  void strike(ramie::runtime_internal::fiber& who) {
    until([this] { return ticket_.load() != none; });
    who.wake_by_accident(ticket_.load());
  }

 private:
  static constexpr std::uint16_t none = 0, too_late = 0xffff;  // no wait has either

  // Woken without an outcome it looks once more, and leaves.
  struct leaving_wait final : ramie::runtime_internal::waitable {
    leaving_wait(ramie::runtime_internal::waitable& what, model_atomic<std::uint16_t>& told) : inner(what), ticket(told) {}
    bool try_complete(ramie::runtime_internal::waiter& node) override {
      if (!inner.try_complete(node)) return has_left;
      has_left = false;
      return true;
    }
    bool publish(ramie::runtime_internal::waiter& node) override {
      if (!inner.publish(node)) return false;
      ticket.store(static_cast<std::uint16_t>(node.ticket));
      return true;
    }
    void unpublish(ramie::runtime_internal::waiter& node) noexcept override {
      inner.unpublish(node);
      has_left = true;
    }
    ramie::runtime_internal::waitable& inner;
    model_atomic<std::uint16_t>& ticket;
    bool has_left = false;
  };

  model_atomic<std::uint16_t> ticket_{none};
};

}  // namespace explore
