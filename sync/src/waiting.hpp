// SPDX-License-Identifier: BSL-1.0
// How all objects of sync/ are waited for: alone, with or without a deadline, and as one case of a select. Word: see
// waitable_of (wait_queue.hpp).
#pragma once

#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/ready.hpp>

#include "owner.hpp"
#include "wait_queue.hpp"

namespace ramie::sync_internal {

using namespace runtime_internal;

inline wait_result park_until(waitable& on, waiter& node, const wait_reason& why, sync_time until) {
  return until == never ? fiber_wait(on, node, why) : fiber_wait_until(on, node, why, until);
}

// With a node that does not exist yet, made from `node_args`; the caller has found that it has to wait. False: too late.
template <class Word, class... Args>
[[nodiscard]] RAMIE_NOINLINE bool wait_slow(typename Word::core& c, const wait_reason& why, sync_time until,
                                            Args... node_args) {
  waitable_of<Word> on(c);
  typename Word::node node(node_args...);
  const auto ended =
      until == never ? fiber_wait_asked(on, node, why) : fiber_wait_until(on, node, why, until);
  return ended != wait_result::timed_out;
}

// The same as a whole operation; `has_come` tells whether it need not wait at all.
template <class Word, class HasCome>
[[nodiscard]] bool wait_for(typename Word::core& c, const wait_reason& why, sync_time until, HasCome has_come) {
  call_context at = current_context();
  begin_operation(at);
  return has_come() || wait_slow<Word>(c, why, until);
}

template <class Word>
[[nodiscard]] ready_source source_of(const typename Word::core& c, std::uint64_t number = 0) noexcept {
  return {&ready_ops_of<case_of<Word>, typename Word::node>, const_cast<typename Word::core*>(&c), nullptr, number};
}

}  // namespace ramie::sync_internal
