// SPDX-License-Identifier: BSL-1.0
// What is thrown at a cancelled fiber, and what programs see of cancellation. How it gets there: scope.cpp.
#include <ramie/cancel.hpp>

#include <new>
#include <string>
#include <utility>

#include <ramie/platform/forced_unwind.hpp>
#include <ramie/runtime/cancel_scope.hpp>
#include <ramie/runtime/report.hpp>
#include <ramie/runtime/spawn.hpp>

#include "../sched/scheduler.hpp"
#include "../wait/wake.hpp"

namespace ramie::runtime_internal {

carried_failure::~carried_failure() {
  if (report_if_dropped_ && !received()) report_lost_failure(who_, what_);
}

std::exception_ptr current_failure(fiber& f) noexcept {
  try {
    throw;
  } catch (const cancelled& c) {
    if (cancel_scope::explains(f, c)) {
      f.touched = true;  // the exception may have been thrown elsewhere
      return nullptr;
    }
    return c.cause() != nullptr ? c.cause() : std::current_exception();
  } catch (const platform::forced_unwind&) {
    thread_ended_in_fiber();
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

using runtime_internal::cancel_scope;

const char* to_string(cancel_kind kind) noexcept {
  switch (kind) {
    case cancel_kind::requested: return "requested";
    case cancel_kind::deadline: return "deadline";
    case cancel_kind::sibling_failure: return "sibling failure";
    case cancel_kind::shutdown: return "shutdown";
    case cancel_kind::deadlock: return "deadlock";
  }
  return "unknown";
}

void check_cancelled() {
  if (runtime_internal::fiber* const f = runtime_internal::current_fiber()) {
    runtime_internal::throw_if_cancelled(*f, f->owner()->cancels.epoch().load(std::memory_order_acquire));
  }
}

bool stop_requested() noexcept {
  runtime_internal::fiber* const f = runtime_internal::current_fiber();
  if (f == nullptr) return false;
  return runtime_internal::is_cancelled(*f, f->owner()->cancels.epoch().load(std::memory_order_acquire));
}

const std::exception_ptr& cancelled::cause() const noexcept {
  if (carried_ != nullptr) carried_->receive();
  return cause_;
}

bool cancelled::is_own() const noexcept {
  const runtime_internal::fiber* const f = runtime_internal::current_fiber();
  return f != nullptr && cancel_scope::explains(*f, *this);
}

std::string cancelled::describe() const {
  (void)cause();
  std::string all("cancelled (");
  all.append(to_string(kind())).append(")");
  if (!reason_->text.empty()) all.append(": ").append(reason_->text);
  if (reason_->origin == cancel_origin::fiber) {
    all.append(", by fiber #").append(std::to_string(reason_->origin_fiber));
  } else if (reason_->origin == cancel_origin::thread) {
    all.append(", by a plain thread");
  }
  if (!reason_->origin_name.empty()) all.append(" '").append(reason_->origin_name).append("'");
  const auto append_place = [&all](const char* before, source_location at) {
    all.append(before).append(at.file_name()).append(":").append(std::to_string(at.line()));
  };
  if (reason_->where.line() != 0) append_place(" at ", reason_->where);
  const char* between = "; scopes ";
  for (const source_location& opened : path()) append_place(std::exchange(between, " > "), opened);
  return all;
}

shield::shield(source_location where) {
  static_assert(sizeof(cancel_scope) <= sizeof scope_, "shield::scope_ holds a cancel_scope");
  new (scope_) cancel_scope(cancel_scope::role::shield, where);
  runtime_internal::self().seen_epoch.set(~std::uint64_t{0});  // what is effective has changed: look again
}

shield::~shield() {
  runtime_internal::self().seen_epoch.set(~std::uint64_t{0});
  std::launder(reinterpret_cast<cancel_scope*>(scope_))->~cancel_scope();
}

}  // namespace ramie::inline v0
