// SPDX-License-Identifier: BSL-1.0
#include "oneshot_core.hpp"

#include <string>

#include <ramie/error.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/ready.hpp>

namespace ramie::channel_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_oneshot{"oneshot recv"};

}  // namespace

std::uint8_t oneshot_settle(oneshot_core& core, oneshot_core::state to) noexcept {
  return settle(core, to);
}

bool oneshot_wait(oneshot_core& core, channel_time deadline) {
  call_context at = current_context();
  begin_operation(at);
  if (is_final(core)) return true;
  oneshot_arrival arrival(core);
  waiter node;
  return fiber_wait_until(arrival, node, waits_for_oneshot, deadline) != wait_result::timed_out;
}

ready_source oneshot_ready_source(oneshot_core& core) noexcept {
  return {&ready_ops_of<oneshot_arrival>, &core, nullptr, 0};
}

void no_such_oneshot(const char* operation) {
  throw usage_error("ramie: " + std::string(operation) +
                    ": this end has no oneshot: it was used, moved from, or default-made. A oneshot carries one value: "
                    "make one for each by make_oneshot<T>().");
}

}  // namespace ramie::channel_internal
