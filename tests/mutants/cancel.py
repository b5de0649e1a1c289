# SPDX-License-Identifier: BSL-1.0
"""Flaws of cancellation and failures: (name, file, [(text, replacement)], how it is noticed)."""
SCOPE, CANCELLED, WAIT = "runtime/src/cancel/scope.cpp", "runtime/src/cancel/cancelled.cpp", "runtime/src/wait/wait.cpp"
NURSERY, CORE, TASKS = "nursery/src/nursery.cpp", "nursery/src/core.cpp", "nursery/src/tasks.cpp"
GATHER = "nursery/include/ramie/gather.hpp"

TIMEOUT = "a timeout inside a destructor fires while an exception unwinds"
FROM_BEFORE = "a scope from before waits until its fiber has unwound"
CHILDREN = "children of a nursery opened in a destructor are not reached by a scope from before"
FOREIGN = "a fiber that ends by another scope's cancellation has failed"
LOST = "a failure is lost when the owner throws something else"
LOSER = "a loser's failure does not replace the winner's value"

MUTANTS = [
    ("who is inside a cancelled task does not see that", "runtime/src/cancel/scope.cpp", [
        ("if (cancel_scope* const own = owner->own_scope()) return own;", ";")],
     {"cases": ["a cancelled task takes along what it has opened"]}),
    ("the cancellation of a task does not wake who is inside", "runtime/src/cancel/scope.cpp", [
        ("cancel_scope& in = own ? *parent_ : *this;", "cancel_scope& in = *this;")],
     {"cases": ["a cancelled task takes along what it has opened"]}),
    ("a task is not cancelled by its own scope", "runtime/src/cancel/scope.cpp", [
        ("if (cancel_scope* const own = f.own_scope()) return own;", ";")],
     {"cases": ["a cancelled task takes along what it has opened", "a shield keeps a task's own cancellation away, and a timeout inside catches only its own"]}),
    # While an exception unwinds.
    ("any exception in flight defers every scope", SCOPE, [
        ("const unsigned at_its_opening = s->owner_.get() == &f ? s->in_flight_ : 0;", "const unsigned at_its_opening = 0;")],
     {"cases": [TIMEOUT]}),
    ("a scope from before is delivered while unwinding", SCOPE, [
        ("if (s->cancels() && in_flight <= at_its_opening) outermost = s;",
         "if (s->cancels() && (in_flight <= at_its_opening || outermost == nullptr)) outermost = s;")],
     {"cases": [FROM_BEFORE]}),
    ("a scope opened in a destructor lets through what is from before", "runtime/internal/ramie/runtime/cancel_scope.hpp", [
        ("    if (in_flight_ == 0) return false;\n    return parent_->owner_.get() != owner || in_flight_ > parent_->in_flight_;", "    return false;")],
     {"cases": [CHILDREN]}),
    ("behind a barrier its owner does not look again", SCOPE, [
        ("its owner looks again.\n  if (in_flight_ != 0) owner_.get()->seen_epoch.set(~std::uint64_t{0});\n", "its owner looks again.\n")], {"cases": [CHILDREN]}),
    ("a sweep goes through a scope opened in a destructor", SCOPE, [
        ("if (child.is_barrier()) continue;", "if (child.role_ == role::shield) continue;")], {"cases": [CHILDREN]}),
    ("a child counts its owner's exceptions", SCOPE, [("s->owner_.get() == &f ? s->in_flight_ : 0;", "s->in_flight_;")],
     {"cases": ["a child of a nursery opened in a destructor is not interrupted while it unwinds"]}),
    ("a join is cut while unwinding", SCOPE, [
        ("  if (cancel_scope* const cut = deliverable(f, &limit)) cut->deliver_to(f);\n",
         "  for (cancel_scope* s = f.scope; s != &limit && s->role_ != role::shield; s = s->parent_) {\n"
         "    if (s->cancels()) s->deliver_to(f);\n  }\n")],
     {"cases": ["a join is not cut by a scope from before its fiber unwound"]}),
    ("operations are ended whatever is in flight", "runtime/src/wait/wait.cpp", [("if (may_cancel_ == cancellable::returns && is_cancelled(f, epoch_)) return",
       "if (may_cancel_ == cancellable::returns && cancel_scope::effective(f, epoch_) != nullptr) return")],
     {"cases": ["input while unwinding is not ended by a scope from before"]}),
    ("stop_requested says yes where nothing is thrown", CANCELLED, [
        ("return runtime_internal::is_cancelled(*f, f->owner()->cancels.epoch().load(std::memory_order_acquire));",
         "return cancel_scope::effective(*f, f->owner()->cancels.epoch().load()) != nullptr;")],
     {"cases": [FROM_BEFORE]}),
    ("scopes inside count as swallowed", SCOPE, [
        ("std::uint8_t& times = own ? owner_deliveries_ : f.cancel_delivered;", "std::uint8_t& times = f.cancel_delivered;")],
     {"cases": [FROM_BEFORE, "who has left a cancelled scope has swallowed nothing when the next one is cancelled"]}),
    # Whose cancellation it is.
    ("any cancellation ends a fiber", CANCELLED, [("if (cancel_scope::explains(f, c)) {", "if (cancel_scope::explains(f, c) || c.number() != 0) {")],
     {"cases": [FOREIGN, "a failure behind another scope's cancellation is what counts"]}),
    ("a cancellation from above a shield ends a fiber", SCOPE, [
        ("for (const cancel_scope* s = first_seen(f); s != nullptr; s = s->seen_above()) {\n    if (s->owns(c))",
         "for (const cancel_scope* s = f.scope; s != nullptr; s = s->parent_) {\n    if (s->owns(c))")],
     {"cases": ["a cancellation from outside a shield is a failure inside it"]}),
    ("no cancellation but its home's ends a fiber", SCOPE, [("    if (s->owns(c)) return true;\n", "    return s->owns(c);\n")],
     {"cases": ["the cancellation of a scope around it ends a fiber as cancelled"]}),
    ("every cancellation has the same number", SCOPE, [
        ("number_ = last_number.fetch_add(1, std::memory_order_relaxed) + 1;", "number_ = last_number.load() + 1;")],
     {"cases": ["a cancellation that was kept is not that of a later scope in the same place"]}),
    ("a scope that is not cancelled owns the last one's cancellation", "runtime/internal/ramie/runtime/cancel_scope.hpp", [
        ("return cancel_requested() && c.number() == number_;", "return c.number() == number_;")],
     {"cases": ["a nursery in the place of a cancelled one does not catch what was kept of that"]}),
    ("get throws the task's cancellation at a cancelled caller", TASKS, [
        ("  check_cancelled();  // who is cancelled, too, ends by that, and not by a failure that is none of its own\n", "")],
     {"cases": ["who asks for a cancelled task and is cancelled, too, ends by its own cancellation"]}),
    ("a stop token's caller does not sign", NURSERY, [("  sign_as_caller(reason);\n  home->cancel(", "  home->cancel(")],
     {"cases": ["a cancellation names a thread only if it was one"]}),
    ("a scope remembers that another chain was clean", SCOPE, [
        ("  clean_at_.store(~std::uint64_t{0}, std::memory_order_relaxed);\n", "")],
     {"cases": ["a new nursery does not go by what its memory knew of other scopes"]}),
    # Who has received a failure.
    ("join rethrows the last failure", CORE, [
        ("      rest->failures.front().received = true;\n      return rest->failures.front().what.what;",
         "      rest->failures.back().received = true;\n      return rest->failures.back().what.what;")],
     {"cases": ["join rethrows the first of several failures"]}),
    ("any exception carries a failure", CORE, [
        ("if (auto who = give_away(cause())) carried->report_if_dropped(std::move(*who));",
         "if (std::uncaught_exceptions() != 0) (void)give_away(cause());")], {"cases": [LOST]}),
    ("nobody reports a failure that is dropped", CANCELLED, [
        ("  if (report_if_dropped_ && !received()) report_lost_failure(who_, what_);\n", "")],
     {"cases": [LOST, "a failure that was kept is reported when it is dropped"]}),
    ("asking for the cause does not receive it", CANCELLED, [("  if (carried_ != nullptr) carried_->receive();\n", "")],
     {"cases": [LOST]}),
    ("a failure is reported although it is carried", CORE, [
        ("  if (auto who = give_away(cause())) carried->report_if_dropped(std::move(*who));\n", "")], {"cases": [LOST]}),
    ("only the last exception carries the failure", SCOPE, [
        ("if (carried_ == nullptr) carried_ = std::make_shared<carried_failure>(cause_);",
         "carried_ = std::make_shared<carried_failure>(cause_);")], {"cases": [LOST]}),
    # race, try_join_all.
    ("a loser's failure replaces the value", GATHER, [
        ("if (failure == nullptr || is_first || !won.exchange(true)) throw;", "if (won.exchange(true) || !is_first) throw;")],
     {"cases": [LOSER]}),
    ("a loser's failure is dropped", GATHER, [("      report_lost_end(failure);\n", "")], {"cases": [LOSER]}),
    ("a winner that can't keep its value loses", GATHER, [
        ("if (failure == nullptr || is_first || !won.exchange(true)) throw;", "if (failure == nullptr || !won.exchange(true)) throw;")],
     {"cases": ["a winner whose value can't be kept has failed"]}),
    ("outcomes are dropped in silence", GATHER, [("if (slot && !slot->has_value()) report_lost_end(slot->failure());", "(void)slot;")],
     {"cases": ["what fails before a cancellation from outside is rethrown by a race, and reported of outcomes"]}),
    ("a timeout is called a deadline", "runtime/include/ramie/timeout.hpp", [('where, "with_timeout")', 'where, "with_deadline")')],
     {"cases": ["a time limit on a plain thread is refused by the name it was called by"]}),
]
