// SPDX-License-Identifier: BSL-1.0
// Pooling of cores, and who receives a failure. (A child's failure cancels its siblings in tasks.cpp, task_failed.)
#include "core.hpp"

#include <type_traits>
#include <utility>

#include <ramie/platform/thread.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

static_assert(std::is_base_of_v<with_lives, nursery_core>);

namespace {

// Leaked on purpose, like the cores: handles may be asked after static destructors have run.
struct core_pool {
  platform::mutex mutex;
  nursery_core* first = nullptr;
};
core_pool& pool() {
  static auto* const the_pool = new core_pool;
  return *the_pool;
}

// Up to `how_many`.
void spill(worker_cache& from, std::uint32_t how_many) noexcept {
  core_pool& all = pool();
  std::lock_guard hold(all.mutex);
  for (; how_many != 0 && from.first.get() != nullptr; --how_many) {
    auto* const core = static_cast<nursery_core*>(from.first.get());
    from.first.set(core->next_in_pool);
    from.free_slots.add(1);
    core->next_in_pool = all.first;
    all.first = core;
  }
}

}  // namespace

// life_of: nothing comes before it.
static_assert(std::is_same_v<decltype(std::declval<nursery_core&>().life), atomic<std::uint64_t>>);

nursery_core& take_from_pool(scheduler& of) {
  core_pool& all = pool();
  {
    std::lock_guard hold(all.mutex);
    if (nursery_core* const core = all.first) {
      all.first = core->next_in_pool;
      core->belongs_to(of);
      return *core;
    }
  }
  return *new nursery_core(of);
}

void make_free_slots(worker_cache& full) noexcept {
  if (full.empty_out.get() != nullptr) return spill(full, cached_cores_limit / 2);
  full.empty_out.set([](worker_cache& s) noexcept { spill(s, cached_cores_limit); });
  full.free_slots.add(cached_cores_limit);
}

[[gnu::cold]] void not_in_tree(const nursery_core& n, const char* what) {
  throw usage_error(std::string("ramie: ") + what +
                    (n.has_joined() ? ": called after join(), which closed the nursery. Open another nursery."
                                    : ": called from outside its tree. Only the fiber that opened the nursery and its "
                                      "live descendants may."));
}

nursery_more& nursery_core::need_more() {
  if (nursery_more* const there = has_more()) return *there;
  auto fresh = std::make_unique<nursery_more>();
  note(needs_slow_teardown);
  nursery_more* expected = nullptr;
  if (!more.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel)) return *expected;
  return *fresh.release();
}

void nursery_core::record_failure(const task_block* task, std::exception_ptr what, const fiber& who) noexcept {
  std::string name;
  try {
    name = describe(who);
    nursery_more& rest = need_more();
    std::lock_guard hold(rest.mutex);
    rest.failures.push_back({{what, std::move(name)}, task, false});
    return;
  } catch (const std::bad_alloc&) {
  }
  {
    std::lock_guard hold(waiters_lock);
    if (unrecorded == nullptr) {
      note(needs_slow_teardown);
      unrecorded = what;
      unrecorded_task = task;
      return;
    }
  }
  report_lost_failure(name, what);
}

std::exception_ptr nursery_core::failure_of(const task_block& task) noexcept {
  if (auto what = unrecorded_failure(); what != nullptr && unrecorded_task == &task) {
    unrecorded_received.set(true);
    return what;
  }
  nursery_more* const rest = has_more();
  if (rest == nullptr) return nullptr;
  std::lock_guard hold(rest->mutex);
  for (recorded_failure& f : rest->failures) {
    if (f.task != &task) continue;
    f.received = true;
    return f.what.what;
  }
  return nullptr;
}

cancelled nursery_core::ending_of(const task_block& task) noexcept {
  const fiber* const by = opened_by();  // the scope has forgotten it after a join
  nursery_more* const rest = has_more();
  if (rest == nullptr) return ending(nullptr, by);
  std::lock_guard hold(rest->mutex);
  const auto own = rest->cancellations.find(&task);
  return ending(own != rest->cancellations.end() ? &own->second.scope : nullptr, by);
}

// One that there was no memory to record is the first if it is what cancelled the nursery, or if there is no other.
std::exception_ptr nursery_core::first_failure() noexcept {
  auto what = unrecorded_failure();
  nursery_more* const rest = has_more();
  if (rest != nullptr && (what == nullptr || what != cause())) {
    std::lock_guard hold(rest->mutex);
    if (!rest->failures.empty()) {
      rest->failures.front().received = true;
      return rest->failures.front().what.what;
    }
  }
  if (what != nullptr) unrecorded_received.set(true);
  return what;
}

// What cancelled the nursery need not be the first one recorded: of two children that fail at once, one may record
// first and the other cancel first.
std::optional<std::string> nursery_core::give_away(const std::exception_ptr& what) noexcept {
  if (unrecorded_failure() == what) {
    if (unrecorded_received.get()) return std::nullopt;
    unrecorded_received.set(true);
    return std::string();
  }
  nursery_more* const rest = has_more();
  if (rest == nullptr) return std::nullopt;
  std::lock_guard hold(rest->mutex);
  for (recorded_failure& f : rest->failures) {
    if (f.what.what == what && !std::exchange(f.received, true)) return std::move(f.what.who);
  }
  return std::nullopt;
}

void nursery_core::report_carried_if_dropped() noexcept {
  const auto carried = take_carried();
  if (carried == nullptr) return;
  if (auto who = give_away(cause())) carried->report_if_dropped(std::move(*who));
}

void nursery_core::report_what_is_left() noexcept {
  if (const nursery_more* const rest = has_more()) {
    for (const recorded_failure& f : rest->failures) {
      if (!f.received) report_lost_failure(f.what.who, f.what.what);
    }
  }
  if (unrecorded != nullptr && !unrecorded_received.get()) report_lost_failure({}, unrecorded);
}

}  // namespace ramie::nursery_internal
