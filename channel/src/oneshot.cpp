// SPDX-License-Identifier: BSL-1.0
#include <ramie/oneshot.hpp>

#include <utility>

#include <ramie/error.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::detail {

namespace {

const wait_reason waits_for_oneshot{"oneshot recv"};

bool is_final(const oneshot_core& core) noexcept {
  return core.now.load(std::memory_order_acquire) >= oneshot_core::value_sent;  // pairs with the exchange of settle
}

// The receiver's side of the state machine, for its own wait and for select.
bool publish_receiver(oneshot_core& core, const waiter& node) noexcept {
  std::uint8_t before = core.now.load(std::memory_order_acquire);
  if (before != oneshot_core::empty) return before == oneshot_core::receiver_waiting;  // twice in one select
  core.who = node.who;
  core.ticket = node.ticket;
  // acq_rel: who and ticket are there for whoever leaves the state; a value that has come is here for us.
  core.published = core.now.compare_exchange_strong(before, oneshot_core::receiver_waiting, std::memory_order_acq_rel);
  return core.published;
}
// Harmless if it was not published, or is no longer.
void unpublish_receiver(oneshot_core& core) noexcept {
  if (!std::exchange(core.published, false)) return;
  std::uint8_t before = oneshot_core::receiver_waiting;
  if (core.now.compare_exchange_strong(before, oneshot_core::empty, std::memory_order_acq_rel)) return;
  for (platform::backoff turn; !core.told.load(std::memory_order_acquire);) turn.wait();
}

class oneshot_arrival final : public waitable {
 public:
  explicit oneshot_arrival(oneshot_core& core) noexcept : core_(core) {}
  bool try_complete(waiter&) override { return is_final(core_); }
  bool publish(waiter& node) override { return publish_receiver(core_, node); }
  void unpublish(waiter&) noexcept override { unpublish_receiver(core_); }

 private:
  oneshot_core& core_;
};

oneshot_core& core_of(const join_target& t) noexcept {
  return *static_cast<oneshot_core*>(t.what);
}

constexpr join_ops oneshot_joins{
    [](const join_target&) {}, [](const join_target&) noexcept {},
    [](const join_target& t) noexcept { return is_final(core_of(t)); },
    [](const join_target& t, keyed_waiter& node) { return publish_receiver(core_of(t), node); },
    [](const join_target& t, keyed_waiter&) noexcept { unpublish_receiver(core_of(t)); }};

}  // namespace

// Final states are left only by the receiver that takes the value. An end that goes must not overwrite the other's
// word.
std::uint8_t oneshot_settle(oneshot_core& core, oneshot_core::state to) noexcept {
  auto before = core.now.load(std::memory_order_relaxed);
  do {
    if (before >= oneshot_core::value_sent) {
      return core.now.load(std::memory_order_acquire);
    }
  } while (!core.now.compare_exchange_weak(before, to, std::memory_order_acq_rel, std::memory_order_relaxed));
  if (before == oneshot_core::receiver_waiting) {
    waker(core.who, core.ticket).wake();
    core.told.store(true, std::memory_order_release);  // pairs with the acquire in unpublish_receiver
  }
  return before;
}

bool oneshot_wait(oneshot_core& core, channel_time deadline) {
  whereabouts at = look_around();
  begin_operation(at);
  if (is_final(core)) return true;
  oneshot_arrival arrival(core);
  waiter node;
  return fiber_wait_until(arrival, node, waits_for_oneshot, deadline) != wait_result::timed_out;
}

join_target oneshot_join_target(oneshot_core& core) noexcept {
  return {&oneshot_joins, &core, nullptr, 0};
}

void no_such_oneshot() {
  throw usage_error("ramie: a oneshot that was used, moved from, or never made.");
}

}  // namespace ramie::detail
