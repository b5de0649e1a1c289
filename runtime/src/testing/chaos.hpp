// SPDX-License-Identifier: BSL-1.0
// Chaos mode (options.chaos): a scheduling policy that decides at random. Fibers yield where they may switch, budgets
// are short, woken fibers are delayed, workers steal although they have something to do, fibers change workers, and
// workers come and go.
//
// W3 of worker.hpp holds. What is runnable is in the injection queue or in a ring, where every worker sees it, at all
// times. A fiber that is delayed is in the injection queue like any other; whoever takes it out before its time puts it
// back and takes another, and runs it if there is no other.
#pragma once

#include <memory>

#include <ramie/options.hpp>

#include "../sched/policy.hpp"

namespace ramie::runtime_internal {

// Throws std::bad_alloc.
[[nodiscard]] std::unique_ptr<scheduling_policy> make_chaos(const chaos_mode& wanted, unsigned worker_slots);

}  // namespace ramie::runtime_internal
