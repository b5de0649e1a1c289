// SPDX-License-Identifier: BSL-1.0
#include "oneshot_core.hpp"

#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>

namespace ramie::detail {

namespace {

const wait_reason waits_for_oneshot{"oneshot recv"};

oneshot_core& core_of(const join_target& t) noexcept {
  return *static_cast<oneshot_core*>(t.what);
}

constexpr join_ops oneshot_joins{
    [](const join_target&) {}, [](const join_target&) noexcept {},
    [](const join_target& t) noexcept { return is_final(core_of(t)); },
    [](const join_target& t, keyed_waiter& node) { return publish_receiver(core_of(t), node); },
    [](const join_target& t, keyed_waiter&) noexcept { unpublish_receiver(core_of(t)); }};

}  // namespace

std::uint8_t oneshot_settle(oneshot_core& core, oneshot_core::state to) noexcept {
  return settle(core, to);
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
