// SPDX-License-Identifier: BSL-1.0
#include "core.hpp"

#include <ramie/platform/thread.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

namespace ramie::detail {

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
void spill(shelf& from, std::uint32_t how_many) noexcept {
  core_pool& all = pool();
  std::lock_guard hold(all.mutex);
  for (; how_many != 0 && from.first.get() != nullptr; --how_many) {
    auto* const core = static_cast<nursery_core*>(from.first.get());
    from.first.set(core->next_in_pool);
    from.room.add(1);
    core->next_in_pool = all.first;
    all.first = core;
  }
}

}  // namespace

nursery_core& take_from_pool() {
  core_pool& all = pool();
  {
    std::lock_guard hold(all.mutex);
    if (nursery_core* const core = all.first) {
      all.first = core->next_in_pool;
      return *core;
    }
  }
  return *new nursery_core;
}

void make_room_on(shelf& full) noexcept {
  if (full.empty_out.get() != nullptr) return spill(full, core_shelf_limit / 2);
  full.empty_out.set([](shelf& s) noexcept { spill(s, core_shelf_limit); });
  full.room.add(core_shelf_limit);
}

[[gnu::cold]] void not_family(const nursery_core& n, const char* what) {
  throw usage_error(std::string("ramie: ") + what +
                    (n.joined.get() ? " a nursery after its join(). Open another nursery."
                                    : " a nursery from outside its tree. Only the fiber that opened it and its live "
                                      "descendants may."));
}

nursery_more& nursery_core::need_more() {
  if (nursery_more* const there = has_more()) return *there;
  auto fresh = std::make_unique<nursery_more>();
  unusual.store(true, std::memory_order_relaxed);
  nursery_more* expected = nullptr;
  if (!more.compare_exchange_strong(expected, fresh.get(), std::memory_order_acq_rel)) return *expected;
  return *fresh.release();
}

void nursery_core::record_failure(const task_record* task, std::exception_ptr what, const fiber& who) noexcept {
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
      unusual.store(true, std::memory_order_relaxed);
      unrecorded = what;
      unrecorded_task = task;
      return;
    }
  }
  report_lost_failure(name, what);
}

std::exception_ptr nursery_core::failure_of(const task_record& task) noexcept {
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

}  // namespace ramie::detail
