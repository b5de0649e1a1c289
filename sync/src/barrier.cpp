// SPDX-License-Identifier: BSL-1.0
#include "barrier_core.hpp"

#include <string>

#include <ramie/error.hpp>

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_the_others{"barrier wait"};

// Who drops out twice, or comes after all have dropped out.
[[noreturn, gnu::cold]] void no_parties_left(const char* function) {
  throw usage_error(std::string("ramie: ") + function +
                    ": all parties have dropped out. Make the barrier with as many parties as wait at it, and drop out "
                    "once a party.");
}

}  // namespace

barrier_status barrier_wait(barrier_core& b, sync_time until) {
  call_context at = current_context();
  begin_operation(at);
  if (barrier_parties::are_gone(b)) no_parties_left("barrier::wait");
  barrier_waitable on(b);
  barrier_waiter node;
  if (park_until(on, node, waits_for_the_others, until) == wait_result::timed_out) return barrier_status::timed_out;
  return node.leads ? barrier_status::leads : barrier_status::passed;
}

void barrier_arrive_and_drop(barrier_core& b) {
  if (!barrier_parties::arrive_and_drop(b)) [[unlikely]]
    no_parties_left("barrier::arrive_and_drop");
}

std::uint64_t barrier_generation(const barrier_core& b) noexcept {
  queue_guard hold(b.waiters);
  return b.generation;
}

}  // namespace ramie::sync_internal
