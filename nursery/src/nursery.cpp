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

namespace ramie::detail {

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

room_for_object make_room(nursery_core& n, std::size_t bytes, std::size_t alignment) {
  (void)must_be_family(n, look_around(), "a make() in");
  nursery_more& more = n.need_more();
  std::lock_guard hold(more.mutex);
  auto& will = more.made.prepare();
  return {more.made.allocate(bytes, alignment), &will};
}

void adopt_made(nursery_core& n, const room_for_object& room, void (*destroy)(void*) noexcept) noexcept {
  nursery_more& more = *n.has_more();
  std::lock_guard hold(more.mutex);
  more.made.adopt(*room.will, room.at, destroy);
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

[[gnu::noinline]] worker_desk* park_until_done(nursery_core& n, waitable& end, fiber* unfit) {
  waiter node;
  join_wait(end, node, waits_to_join, unfit);
  n.live.reset();
  return this_desk();
}

[[gnu::noinline]] worker_desk* await_from_within(nursery_core& n) {
  whereabouts at = look_around();
  keep_to_budget(at);
  join_from_within from_within(n);
  return park_until_done(n, from_within, nullptr);
}

// Until no fiber lives. In place where that is sound (join.hpp J1–J4).
// Returns where the caller is then.
RAMIE_FLATTEN worker_desk* await_all(nursery_core& n, const whereabouts& at) {
  if (at.innermost() == &n) [[likely]] {
    const auto [desk, unfit] = run_descendants(n);
    return desk != nullptr ? desk : park_until_done(n, n.live, unfit);
  }
  return await_from_within(n);
}

[[noreturn, gnu::cold, gnu::noinline]] void not_the_owner(const nursery_core& n, const char* what);

RAMIE_FLATTEN whereabouts must_own(const nursery_core& n, const char* what) {
  const whereabouts at = look_around();
  if (!is_owner(n, at) || n.joined.get()) [[unlikely]]
    not_the_owner(n, what);
  return at;
}

void not_the_owner(const nursery_core& n, const char* what) {
  std::string text = std::string("ramie: ") + what;
  if (n.joined.get()) {
    text += " after join(): the nursery is closed.";
  } else if (kinship_to(n, look_around()) == kinship::descendant) {
    text += " from inside its own tree: it would wait for itself. Only the fiber that opened the nursery may.";
  } else {
    text += " by another fiber or thread. Only the fiber that opened the nursery may.";
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
  n.unusual.store(true, std::memory_order_relaxed);
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

[[gnu::noinline]] void clear_unusual(nursery_core& n) noexcept {
  while (n.visitors.load(std::memory_order_acquire) != 0) let_others_pass();  // 3
  const bool results = n.has_results.load(std::memory_order_relaxed);
  if (results) n.store.clear(true, n.live.spawned());
  n.entrust_carried();
  n.report_what_is_left();
  if (n.has_more() != nullptr) clear_more(n, results);
  n.unrecorded = nullptr;
  n.unrecorded_received.set(false);
  n.has_results.store(false, std::memory_order_relaxed);
  n.asked_to_stop.store(false, std::memory_order_relaxed);
  n.unusual.store(false, std::memory_order_relaxed);
  n.forget_reason();
}

[[gnu::noinline]] void recycle_slowly(nursery_core& n) noexcept {
  clear_unusual(n);
  n.store.clear(false, n.live.spawned());
  shelf& here = this_desk()->nurseries;  // destructors may have waited, and come back elsewhere
  if (here.room.get() == 0) make_room_on(here);
  n.joined.set(false);
  give_core(here, n);
}

RAMIE_FLATTEN void recycle(nursery_core& n, shelf& here) noexcept {
  n.life.store(n.life.load(std::memory_order_relaxed) + 1, std::memory_order_release);  // 1
  platform::light_fence();                                                              // 2
  const bool unseen = n.visitors.load(std::memory_order_acquire) == 0;                  // 3
  if (!unseen || n.unusual.load(std::memory_order_relaxed) || n.store.has_grown() || here.room.get() == 0) [[unlikely]]
    return recycle_slowly(n);
  n.store.restart(n.live.spawned());
  n.joined.set(false);
  give_core(here, n);
}

[[noreturn, gnu::cold, gnu::noinline]] void not_destroyed_by_owner() noexcept {
  platform::fatal("a nursery was not destroyed by the fiber that opened it.");
}

void end_without_join(nursery_core& n) noexcept {
  auto at = look_around();
  if (at.self != n.opened_by.get() || at.innermost() != &n) {
    platform::fatal("a nursery was not destroyed by the block and fiber that opened it.");
  }
  if (n.live.now() != 0) {
    cancel_as_caller(n, reason_saying("its nursery ended without a join()", cancel_kind::requested, n.site()));
    (void)await_all(n, at);
  } else {
    keep_to_budget(at);
  }
  n.joined.set(true);  // destructors of what it owns find it closed
  end_triggers(n);
}

[[gnu::noinline]] void end_open(nursery_core& n) noexcept {
  if (!n.joined.get()) end_without_join(n);
  if (!is_owner(n, look_around())) not_destroyed_by_owner();
  n.unusual.store(true, std::memory_order_relaxed);  // it may have been cancelled
  n.close();
}

// All have ended, and nothing has happened but that.
RAMIE_FLATTEN bool ends_plainly(const nursery_core& n, const worker_desk& desk, const fiber_face& owner) noexcept {
  const bool quiet = desk.cancel_epoch->load(std::memory_order_acquire) == owner.seen_epoch.get();
  const bool plain = !n.unusual.load(std::memory_order_relaxed) && owner.scope == &n && n.untouched();
  return quiet && plain;
}

[[gnu::noinline]] void end_join_slowly(nursery_core& n) {
  const auto at = look_around();
  n.forget_look();
  if (ends_plainly(n, *at.desk, face_of(*at.self))) return n.close_untouched(face_of(*at.self));
  n.unusual.store(true, std::memory_order_relaxed);  // it may have been cancelled
  end_triggers(n);
  if (at.innermost() == &n) {
    n.close();
  } else {
    n.end_early();
  }
  if (auto failed = n.first_failure()) std::rethrow_exception(std::move(failed));
  check_cancelled();
}

[[noreturn, gnu::cold, gnu::noinline]] void outside_a_fiber() {
  throw usage_error("ramie: a nursery outside a fiber. Open it inside run().");
}

std::vector<std::string> names_of_live(nursery_core& n) {
  std::vector<std::string> names;
  const auto look = [&names](task_record& task) {
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

}  // namespace

}  // namespace ramie::detail

namespace ramie::inline v0 {

using detail::nursery_core;

nursery::nursery(source_location site) {
  const auto at = detail::look_around();
  if (at.self == nullptr) [[unlikely]]
    detail::outside_a_fiber();
  nursery_core* n = detail::take_core(at.desk->nurseries);
  if (n == nullptr) [[unlikely]]
    n = &detail::take_from_pool();
  core_ = n;
  life_ = n->life.load(std::memory_order_relaxed);
  n->open(at, site);
  n->opened_by.set(at.self);
}

nursery::~nursery() {
  nursery_core& n = *core_;
  if (n.is_open()) [[unlikely]]
    detail::end_open(n);  // not joined, or joined from within another scope
  const auto at = detail::look_around();
  if (!detail::is_owner(n, at)) [[unlikely]]
    detail::not_destroyed_by_owner();
  detail::recycle(n, at.desk->nurseries);
}

void nursery::join() {
  nursery_core& n = *core_;
  const auto at = detail::must_own(n, "nursery::join()");
  const auto* const desk = detail::await_all(n, at);
  n.joined.set(true);
  auto& self = detail::face_of(*at.self);
  if (!detail::ends_plainly(n, *desk, self)) [[unlikely]]
    return detail::end_join_slowly(n);
  n.close_untouched(self);
}

bool nursery::cancel(std::string why, source_location where) noexcept {
  return detail::cancel_as_caller(*core_, {cancel_kind::requested, std::move(why), where});
}

void nursery::cancel_at(std::chrono::steady_clock::time_point when, source_location where) {
  (void)detail::must_own(*core_, "nursery::cancel_at()");
  auto& entry = core_->need_more().deadline;
  detail::remove_deadline(entry);
  entry.set(when, *core_, where);
  if (when != std::chrono::steady_clock::time_point::max()) detail::add_deadline(entry);
}

void nursery::cancel_on(std::stop_token token, source_location where) {
  (void)detail::must_own(*core_, "nursery::cancel_on()");
  core_->need_more().stop_callbacks.emplace_back(std::move(token), detail::cancel_on_stop{core_, where});
}

std::stop_token nursery::get_stop_token() {
  (void)detail::must_own(*core_, "nursery::get_stop_token()");
  auto& stop = core_->need_more().stop;
  if (!stop) {
    stop.emplace();
    core_->carry(*stop);
    if (core_->asked_to_stop.load(std::memory_order_relaxed)) stop->request_stop();
  }
  return stop->get_token();
}

shutdown_report nursery::shutdown_by(std::chrono::steady_clock::time_point when, source_location where) {
  nursery_core& n = *core_;
  (void)detail::must_own(n, "nursery::shutdown()");
  n.unusual.store(true, std::memory_order_relaxed);
  n.asked_to_stop.store(true, std::memory_order_release);
  if (auto* const more = n.has_more(); more != nullptr && more->stop) more->stop->request_stop();
  shutdown_report found;
  const bool in_time = with_deadline(
      when, [&] { (void)detail::await_all(n, detail::look_around()); }, where);
  if (!in_time) {
    std::exception_ptr no_memory;
    try {
      found.stragglers = detail::names_of_live(n);
    } catch (const std::bad_alloc&) {
      no_memory = std::current_exception();
    }
    detail::cancel_as_caller(n, detail::reason_saying("its time to shut down is over", cancel_kind::shutdown, where));
    (void)detail::await_all(n, detail::look_around());
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
