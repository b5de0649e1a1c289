// SPDX-License-Identifier: BSL-1.0
#include "latch_core.hpp"

#include "waiting.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_latch{"latch wait"};

}  // namespace

void latch_count_down(latch_core& l, std::int64_t by) {
  constexpr const char* here = "latch::count_down";
  const auto count = checked_count(by, 0, here, "Count down by 0 or more.");
  if (!latch_word::count_down(l, count)) [[unlikely]]
    refuse_count(here, by, "That would be below zero. Make the latch with as many as will count down.");
}

bool latch_wait(latch_core& l, sync_time until) {
  return wait_for<latch_word>(l, waits_for_latch, until, [&l] { return latch_word::is_open(l); });
}

ready_source latch_source(const latch_core& l) noexcept {
  return source_of<latch_word>(l);
}

}  // namespace ramie::sync_internal
