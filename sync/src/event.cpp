// SPDX-License-Identifier: BSL-1.0
#include "event_core.hpp"

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_event{"event wait"};

}  // namespace

void event_set(event_core& e) noexcept {
  event_word::set(e);
}

void event_reset(event_core& e) noexcept {
  event_word::reset(e);
}

bool event_wait(event_core& e, sync_time until) {
  return wait_for<event_word>(e, waits_for_event, until, [&e] { return event_word::has_happened(e); });
}

ready_source event_source(const event_core& e) noexcept {
  return source_of<event_word>(e);
}

}  // namespace ramie::sync_internal
