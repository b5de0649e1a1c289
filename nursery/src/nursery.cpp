// SPDX-License-Identifier: BSL-1.0
// Opening, joining, cancelling and ending a nursery.
#include <ramie/nursery.hpp>

#include <algorithm>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/join.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>
#include <ramie/timeout.hpp>

#include "core.hpp"

namespace ramie::nursery_internal {

using namespace runtime_internal;

namespace {

// The text is left out if there is no memory for it.
cancel_reason reason_saying(const char* why, cancel_kind kind, source_location where) noexcept {
  cancel_reason reason{kind, {}, where};
  try {
    reason.text = why;
  } catch (const std::bad_alloc&) {  // the kind and the place say most of it
  }
  return reason;
}

}  // namespace

void cancel_on_stop::operator()() const noexcept {
  cancel_reason reason = reason_saying("asked to stop by a stop token", cancel_kind::requested, where);
  sign_as_caller(reason);
  home->cancel(std::move(reason));
}

struct arena_access {
  [[nodiscard]] static destructor_record& prepare(arena& a) { return a.prepare(); }
  static void adopt(arena& a, destructor_record& record, void* object, void (*destroy)(void*) noexcept) noexcept {
    a.adopt(record, object, destroy);
  }
};

object_storage reserve_object(nursery_core& n, std::size_t bytes, std::size_t alignment) {
  (void)must_be_in_tree(n, current_context(), "nursery::make");
  nursery_more& more = n.need_more();
  std::lock_guard hold(more.mutex);
  auto& record = arena_access::prepare(more.made);
  return {more.made.allocate(bytes, alignment), &record};
}

void adopt_made(nursery_core& n, const object_storage& storage, void (*destroy)(void*) noexcept) noexcept {
  nursery_more& more = *n.has_more();
  std::lock_guard hold(more.mutex);
  arena_access::adopt(more.made, *storage.record, storage.at, destroy);
}

namespace {

const wait_reason waits_to_join{"join"};

// A join from inside a scope opened after the nursery: it parks, and that scope's cancellation ends the wait.
class join_from_within final : public waitable {
 public:
  explicit join_from_within(nursery_core& n) noexcept : home_(n) {}
  bool try_complete(waiter& node) override {
    if (home_.live.try_complete(node)) return true;
    cancel_scope::check_below(home_);
    return false;
  }
  bool publish(waiter& node) override { return home_.live.publish(node); }
  void unpublish(waiter& node) noexcept override { home_.live.unpublish(node); }

 private:
  nursery_core& home_;
};

[[gnu::noinline]] worker_local* park_until_done(nursery_core& n, waitable& end, fiber* unfit) {
  waiter node;
  join_wait(end, node, waits_to_join, unfit);
  n.live.reset();
  return this_worker_local();
}

[[gnu::noinline]] worker_local* await_from_within(nursery_core& n) {
  call_context at = current_context();
  keep_to_budget(at);
  join_from_within from_within(n);
  return park_until_done(n, from_within, nullptr);
}

// Until no fiber lives. In place where that is sound (join.hpp J1–J4).
// Returns where the caller is then.
RAMIE_FLATTEN worker_local* await_all(nursery_core& n, const call_context& at) {
  if (at.innermost() == &n) [[likely]] {
    const auto [local, unfit] = run_descendants(n, *at.local);
    return local != nullptr ? local : park_until_done(n, n.live, unfit);
  }
  return await_from_within(n);
}

[[noreturn, gnu::cold, gnu::noinline]] void not_the_owner(const nursery_core& n, const char* what);

RAMIE_FLATTEN call_context must_own(const nursery_core& n, const char* what) {
  const call_context at = current_context();
  if (!n.is_open_to(at.self)) [[unlikely]]
    not_the_owner(n, what);
  return at;
}

void not_the_owner(const nursery_core& n, const char* what) {
  std::string text = std::string("ramie: ") + what;
  if (n.has_joined()) {
    text += ": called after join(), which closed the nursery. Open another nursery.";
  } else if (role_of_caller(n, current_context()) == caller_role::descendant) {
    text += ": called from inside its own tree, it would wait for itself. Only the fiber that opened the nursery may.";
  } else {
    text += ": called by another fiber or thread. Only the fiber that opened the nursery may.";
  }
  throw usage_error(text);
}

// Nothing can stop the scope any more, and it can't be cancelled from a token or a clock.
void end_triggers(nursery_core& n) noexcept {
  if (nursery_more* const more = n.has_more()) {
    more->stop_callbacks.clear();
    remove_deadline(more->deadline);
    more->deadline.target = nullptr;
  }
}

bool cancel_as_caller(nursery_core& n, cancel_reason reason) noexcept {
  sign_as_caller(reason);
  n.note(needs_slow_teardown);
  return n.cancel(std::move(reason));
}

void clear_more(nursery_core& n, bool results) noexcept {
  nursery_more* const more = n.has_more();
  more->store.clear(results, 0);
  more->made.clear();
  n.more.store(nullptr, std::memory_order_relaxed);
  delete more;
  n.spawned_by_descendants.store(0, std::memory_order_relaxed);
}

[[gnu::noinline]] void teardown_slow(nursery_core& n) noexcept {
  while (n.has_visitors()) spin_yield();  // 3
  const bool results = n.has_noted(has_results);
  if (results) n.store.clear(true, n.ended());
  n.report_carried_if_dropped();
  n.report_what_is_left();
  if (n.has_more() != nullptr) clear_more(n, results);
  n.unrecorded = nullptr;
  n.unrecorded_received.set(false);
  n.asked_to_stop.store(false, std::memory_order_relaxed);
  n.forget_reason();
}

[[gnu::noinline]] void recycle_slow(nursery_core& n) noexcept {
  teardown_slow(n);
  n.store.clear(false, n.ended());
  n.forget_notes();
  worker_cache& here = this_worker_local()->nurseries;  // destructors may have waited, and come back elsewhere
  if (here.free_slots.get() <= 0) make_free_slots(here);
  (void)try_give_core(here, n);
}

// Blocks of tasks that have ended elsewhere, or whose handle was kept, are in no list.
[[gnu::noinline]] void put_in_order(nursery_core& n) noexcept {
  n.forget_notes();
  n.store.restart(n.ended());
}

[[gnu::noinline]] void recycle_noted(nursery_core& n, worker_cache& here, std::uint64_t notes) noexcept {
  if (notes != scattered) return recycle_slow(n);
  put_in_order(n);
  if (!try_give_core(here, n)) return recycle_slow(n);
}

RAMIE_FLATTEN void recycle(nursery_core& n, worker_cache& here) noexcept {
  platform::add_one_by_owner(n.life);                         // 1
  platform::light_fence();                                    // 2
  const auto notes = n.notes.load(std::memory_order_acquire);  // 3
  if (notes != 0) [[unlikely]]
    return recycle_noted(n, here, notes);
  if (!try_give_core(here, n)) [[unlikely]]
    return recycle_slow(n);
}

[[noreturn, gnu::cold, gnu::noinline]] void not_destroyed_by_owner() noexcept {
  platform::fatal("a nursery was not destroyed by the fiber that opened it.");
}

void end_without_join(nursery_core& n) noexcept {
  auto at = current_context();
  if (at.self != n.opened_by() || at.innermost() != &n) {
    platform::fatal("a nursery was not destroyed by the block and fiber that opened it.");
  }
  if (n.live.now() != 0) {
    cancel_as_caller(n, reason_saying("its nursery ended without a join()", cancel_kind::requested, n.site()));
    (void)await_all(n, at);
  } else {
    keep_to_budget(at);
  }
  n.opener.add(counted_scope::joined);  // destructors of what it owns find it closed
  end_triggers(n);
}

[[gnu::noinline]] void end_open(nursery_core& n) noexcept {
  if (!n.has_joined()) end_without_join(n);
  if (!is_owner(n, current_context())) not_destroyed_by_owner();
  n.note(needs_slow_teardown);  // it may have been cancelled
  n.close();
}

// All have ended, and nothing has happened but that.
RAMIE_FLATTEN bool ends_plainly(const nursery_core& n, const worker_local& local, const fiber_head& owner) noexcept {
  const bool quiet = local.cancel_epoch->load(std::memory_order_acquire) == owner.seen_epoch.get();
  const bool plain = owner.scope == &n && n.untouched();
  return quiet && plain;
}

// All have ended. `opener` says that it was joined.
[[gnu::noinline]] void end_join_slow(nursery_core& n) {
  const auto at = current_context();
  fiber_head& self = head_of(*n.owner());
  n.forget_clean_mark();
  if (ends_plainly(n, *at.local, self)) return n.close_untouched(self);
  n.note(needs_slow_teardown);  // it may have been cancelled
  end_triggers(n);
  if (self.scope == &n) {
    n.close();
  } else {
    n.opener.add(counted_scope::lingers);
    n.end_early();
  }
  if (auto failed = n.first_failure()) std::rethrow_exception(std::move(failed));
  check_cancelled();
}

[[noreturn, gnu::cold, gnu::noinline]] void outside_a_fiber() {
  throw usage_error("ramie: nursery::nursery: opened outside a fiber. Open it inside run().");
}

std::vector<std::string> names_of_live(nursery_core& n) {
  std::vector<std::string> names;
  const auto look = [&names](task_block& task) {
    std::string name = describe_briefly(task);
    if (!has_finished(task)) names.push_back(std::move(name));  // else its frame may have been another's already
  };
  n.store.for_each(look);
  if (nursery_more* const more = n.has_more()) {
    std::lock_guard hold(more->mutex);
    more->store.for_each(look);
  }
  return names;
}

// What is left of a join.
void finish_join_of(counted_scope& of, join_so_far how_far, queued* other) {
  auto& n = static_cast<nursery_core&>(of);
  if (how_far != join_so_far::all_ended) {
    if (how_far == join_so_far::nothing) {
      (void)await_all(n, must_own(n, "nursery::join"));
    } else {
      const auto [local, unfit] = run_others(n, other);
      if (local == nullptr) (void)park_until_done(n, n.live, unfit);
    }
    n.opener.add(counted_scope::joined);
  }
  end_join_slow(n);
}

}  // namespace

nursery_core::nursery_core(scheduler& of) noexcept : counted_scope(unopened{}, finish_join_of) {
  belongs_to(of);
}

namespace {

[[gnu::noinline]] void destroy_slow(nursery_core& n) noexcept {
  if (n.is_open()) end_open(n);  // not joined, or joined from within another scope
  const auto at = current_context();
  if (!is_owner(n, at)) not_destroyed_by_owner();
  recycle(n, at.local->nurseries);
}

}  // namespace

}  // namespace ramie::nursery_internal

namespace ramie::inline v0 {

using nursery_internal::nursery_core;

nursery::nursery(source_location site) {
  auto& here = runtime_internal::this_worker_local_or_none();
  runtime_internal::fiber* const self = here.current.get();
  nursery_core* const n = self != nullptr ? nursery_internal::take_core(here.nurseries) : nullptr;
  if (n != nullptr) [[likely]] {
    core_ = n;
    n->opener.set(reinterpret_cast<std::uintptr_t>(self));
    n->open_again(here, *self, site);
  } else {
    open_slow(site);
  }
}

// There is no core at hand, or the caller is no fiber.
[[gnu::noinline]] void nursery::open_slow(source_location site) {
  const auto at = runtime_internal::current_context();
  if (at.self == nullptr) nursery_internal::outside_a_fiber();
  nursery_core& n = nursery_internal::take_from_pool(*at.local->runs_in);
  core_ = &n;
  n.opener.set(reinterpret_cast<std::uintptr_t>(at.self));
  n.open_again(*at.local, *at.self, site);
}

nursery::~nursery() {
  nursery_core& n = *core_;
  auto& here = runtime_internal::this_worker_local_or_none();
  if (n.was_joined_by(here.current.get())) [[likely]] {
    nursery_internal::recycle(n, here.nurseries);
  } else {
    nursery_internal::destroy_slow(n);
  }
}

void nursery::join() {
  runtime_internal::join_in_place(*core_);
}

bool nursery::cancel(std::string why, source_location where) noexcept {
  return nursery_internal::cancel_as_caller(*core_, {cancel_kind::requested, std::move(why), where});
}

void nursery::cancel_at(deadline when, source_location where) {
  (void)nursery_internal::must_own(*core_, "nursery::cancel_at");
  auto& entry = core_->need_more().deadline;
  runtime_internal::remove_deadline(entry);
  entry.set(when.when(), *core_, where);
  if (!when.is_never()) runtime_internal::add_deadline(entry);
}

void nursery::cancel_on(std::stop_token token, source_location where) {
  (void)nursery_internal::must_own(*core_, "nursery::cancel_on");
  core_->need_more().stop_callbacks.emplace_back(std::move(token), nursery_internal::cancel_on_stop{core_, where});
}

std::stop_token nursery::get_stop_token() {
  (void)nursery_internal::must_own(*core_, "nursery::get_stop_token");
  auto& stop = core_->need_more().stop;
  if (!stop) {
    stop.emplace();
    core_->carry(*stop);
    if (core_->asked_to_stop.load(std::memory_order_relaxed)) stop->request_stop();
  }
  return stop->get_token();
}

shutdown_report nursery::shutdown(deadline grace, source_location where) {
  nursery_core& n = *core_;
  (void)nursery_internal::must_own(n, "nursery::shutdown");
  n.note(nursery_internal::needs_slow_teardown);
  n.asked_to_stop.store(true, std::memory_order_release);
  if (auto* const more = n.has_more(); more != nullptr && more->stop) more->stop->request_stop();
  shutdown_report found;
  const bool in_time = with_deadline(
      grace, [&] { (void)nursery_internal::await_all(n, runtime_internal::current_context()); }, where);
  if (!in_time) {
    std::exception_ptr no_memory;
    try {
      found.stragglers = nursery_internal::names_of_live(n);
    } catch (const std::bad_alloc&) {
      no_memory = std::current_exception();
    }
    nursery_internal::cancel_as_caller(
        n, nursery_internal::reason_saying("its time to shut down is over", cancel_kind::shutdown, where));
    (void)nursery_internal::await_all(n, runtime_internal::current_context());
    if (no_memory != nullptr) std::rethrow_exception(std::move(no_memory));
  }
  if (!n.cancel_requested()) check_cancelled();
  return found;
}

bool nursery::closing() const noexcept {
  return core_->cancel_requested() || core_->asked_to_stop.load(std::memory_order_acquire);
}

std::size_t nursery::live_fibers() const noexcept {
  return static_cast<std::size_t>(std::max<std::int64_t>(0, core_->live.now()));
}

std::vector<failure> nursery::failures() {
  std::vector<failure> all;
  if (auto unrecorded = core_->unrecorded_failure()) all.push_back({std::move(unrecorded), {}});
  const bool one_unrecorded = !all.empty();
  if (auto* const more = core_->has_more()) {
    std::lock_guard hold(more->mutex);
    for (const auto& f : more->failures) all.push_back(f.what);
    for (auto& f : more->failures) f.received = true;  // all of them, or none if there is no memory
  }
  if (one_unrecorded) core_->unrecorded_received.set(true);
  return all;
}

bool nursery::owns(const cancelled& c) const noexcept {
  return core_->owns(c);
}

}  // namespace ramie::inline v0
