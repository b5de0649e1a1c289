// SPDX-License-Identifier: BSL-1.0
#include "worker.hpp"

#include "scheduler.hpp"

namespace ramie::runtime_internal {

worker::worker(scheduler& of, worker_pool& in, platform::lock_family& family, std::uint32_t slot,
               std::uint64_t seed) noexcept
    : sched(of), pool(in), policy(of.policy), index(slot), run(platform::promised_bytes(of.default_class)), dispatch(seed), queue(*this) {
  runs_in = &of;
  cancel_epoch = &of.cancels.epoch();
  lock_user.family = &family;
  lock_user.cell = slot;
  budget.set(budget_per_tick);
  rng.set(dispatch.random.next() | 1);
}

worker::~worker() {
  for (worker_cache* s : {&nurseries, &memory}) {
    if (const auto empty_out = s->empty_out.get()) empty_out(*s);
  }
}

}  // namespace ramie::runtime_internal
