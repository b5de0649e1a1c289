# SPDX-License-Identifier: BSL-1.0
"""Flaws that break a clause of spec/: the cases that its row in spec/conformance.md names notice them.

(name, file, [(old text, new text), ...], how): see runner/lists.py.
"""

MONITOR = "runtime/src/sched/monitor.cpp"
INJECTION = "runtime/src/sched/injection_queue.hpp"

REASONS = {"cases": ["what stops the pool from growing is counted as that, and nothing else"]}
LIMIT = {"cases": ["there are never more than twice as many workers"]}
DRAINING = {"cases": ["a draining worker steals nothing and takes nothing"]}
THREE_TURNS = {"cases": ["the slot goes first three times in a row, then the ring's oldest"]}
QUEUES_HPP = "runtime/src/sched/run_queues.hpp"
QUEUES = "runtime/src/sched/run_queues.cpp"
DISPATCHER = "runtime/src/sched/dispatcher.cpp"
IDLE = "runtime/src/sched/idle.cpp"
WORKERS = "runtime/src/sched/worker_pool.cpp"
RUNNER_HPP = "runtime/src/sched/runner.hpp"
RUNNER = "runtime/src/sched/runner.cpp"
SCHEDULER = "runtime/src/sched/scheduler.cpp"
SPAWN = "runtime/src/sched/spawn.cpp"
WAIT = "runtime/src/wait/wait.cpp"
QUIESCENCE = "runtime/src/testing/quiescence.cpp"

MUTANTS = [
    # The elastic pool.
    ("pressure is never negative", SCHEDULER, [("    sum += static_cast<std::int64_t>(queued) -",
       "    if (queued > w->count.polls.get()) sum += static_cast<std::int64_t>(queued) -")],
     {"cases": ["pressure is a signed sum over all workers"]}),
    ("negative pressure is never an error", MONITOR, [("streak_.get() > sustained_negative_pressure", "streak_.get() == 0")],
     {"cases": ["builds with checks notice pressure that stays negative"], "checks": True}),
    ("a negative streak never ends", MONITOR, [("    streak_.set(0);\n    return;", "    return;")],
     {"cases": ["pressure may be negative for 500 samples in a row"]}),
    ("no work is counted as not stuck", MONITOR, [("return no_work_.add(1)", "return not_stuck_.add(1)")], REASONS),
    ("not stuck is counted as no work", MONITOR, [("return not_stuck_.add(1)", "return no_work_.add(1)")], REASONS),
    ("pressure that is not positive does not stop the pool from growing", MONITOR, [("if (pressure <= 0)", "if (pressure < -1)")], REASONS),
    ("a roused sleeper is counted as the limit", MONITOR, [("if (sched_.pool.wake_one()) return idle_capacity_", "if (sched_.pool.wake_one()) return at_limit_")], REASONS),
    ("the pool grows beside a napping worker", MONITOR, [("if (looked_for || ", "(void)looked_for;\n  if (")], REASONS),
    ("the pool grows beside a searching worker", MONITOR, [("if (looked_for || sched_.pool.idle().load().searching() != 0)", "if (looked_for)")], REASONS),
    ("a pool that is not elastic passes the gate", MONITOR, [("  if (!sched_.pool.elastic()) return at_limit_.add(1);  // it only reports\n", "")], REASONS),
    ("an idle worker counts as stuck", MONITOR, [("if (moved || !w->is_active()) {", "if (moved) {")], REASONS),
    ("three times as many workers", WORKERS, [("configured_ * elastic_factor", "configured_ * (elastic_factor + 1)")], LIMIT),
    ("a pool that is not elastic has room to grow", WORKERS, [("wanted.elastic ? configured_ * elastic_factor : configured_", "configured_ * elastic_factor")], LIMIT),
    ("who is not stalled retires below M", WORKERS, [("now > configured_ && now - stalled_.load(std::memory_order_relaxed) > configured_",
       "now > configured_")],
     {"cases": ["a worker is surplus only beyond those that are stalled"]}),
    ("a worker that was told to drain looks for work", "runtime/src/sched/dispatcher.cpp", [("if (w.pool.attend(w)) return nullptr;\n      withdraw", "(void)w.pool.attend(w);\n      withdraw")], DRAINING),
    ("a drained worker goes on with what is queued", RUNNER, [("dispatcher::is_searching(w) || w.run.leaving_pool.get() || (f =",
       "dispatcher::is_searching(w) || (f ="), ("if (w.run.leaving_pool.get() || (f =", "if ((f =")], DRAINING),
    ("a draining worker does not say so", WORKERS, [("  set_state(w, worker_state::draining);\n", "")],
     {"cases": ["a draining worker moves all it has to the injection queue"]}),
    ("a worker that was woken counts as asleep", IDLE, [("  worker_pool::set_state(w, worker_state::idle_spin);\n  w.dispatch.join_backoff",
       "  w.dispatch.join_backoff")],
     {"cases": ["a worker that is woken is idle and no longer asleep"]}),
    ("a sleeping worker counts as idle", IDLE, [("worker_pool::set_state(w, worker_state::sleep", "worker_pool::set_state(w, worker_state::idle_spin")],
     {"cases": ["a worker's state says whether it has a thread, runs fibers or sleeps"]}),
    ("a worker that runs fibers counts as idle", IDLE, [("    worker_pool::set_state(w, worker_state::active);\n", "")],
     {"cases": ["a worker's state says whether it has a thread, runs fibers or sleeps"]}),
    # Queues and their order.
    ("a woken fiber goes to the ring", QUEUES_HPP, [("  if (!newest_may_go_first(w)) return push_ring(w, f);",
       "  if (w.index != ~0u) return push_ring(w, f);")],
     {"cases": ["a woken fiber goes to the slot, a spawned one to the young end, one from outside to the injection queue"]}),
    ("the slot goes first for ever", QUEUES_HPP, [("if (w.queue.lifo_polls.get() < max_lifo_polls) [[likely]]", "if (w.index != ~0u) [[likely]]")], THREE_TURNS),
    ("the slot has three turns once", QUEUES_HPP, [("  w.queue.lifo_polls.set(0);\n  w.queue.fresh_polls.set(0);\n", "  w.queue.fresh_polls.set(0);\n")], THREE_TURNS),
    ("the slot has its turns over an empty ring", QUEUES_HPP, [("  if (!w.queue.ring.empty()) return false;\n  w.queue.lifo_polls.set(0);\n  return true;",
       "  return false;")],
     {"cases": ["while the ring is empty the slot goes first as often as it likes"]}),
    ("a flushed fiber runs at once", QUEUES_HPP, [("if (f != nullptr && !capped) [[likely]] {", "if ((void)capped, f != nullptr) [[likely]] {")],
     {"cases": ["a slot that has had its turns is flushed to the ring's young end"]}),
    ("a tick's end does not renew the slot's turns", DISPATCHER, [("    run_queues::restart_lifo_turns(w);\n    self.run_due_timers(w, now);\n",
       "    self.run_due_timers(w, now);\n")],
     {"cases": ["the slot's turns begin anew at the end of a tick"]}),
    ("the injection queue has no turn of its own", DISPATCHER, [("return pacing.injection_turn(polls) ? w.sched.queues.take_injected(w) : nullptr;",
       "(void)pacing.injection_turn(polls);\n  return nullptr;")],
     {"cases": ["the injection queue has its turn before the slot, else comes behind the ring"]}),
    ("a visit takes a batch while the ring has some", QUEUES, [("const bool only_one = w.policy != nullptr || !w.queue.ring.empty();",
       "const bool only_one = w.policy != nullptr;")],
     {"cases": ["the injection queue's turn takes one fiber while the ring has some, else a batch"]}),
    ("a worker steals before it looks at the injection queue", "runtime/src/sched/dispatcher.cpp", [("  fiber* const f = next_local(w);\n  return f != nullptr ? f : sched_.queues.take_injected(w);\n",
       "  return run_queues::local_empty(w) ? nullptr : next_local(w);\n")],
     {"cases": ["a worker steals only when the injection queue is empty, too"]}),
    ("a spawn from outside does not wait for room", SPAWN, [("  sched.queues.wait_for_capacity();\n", "")],
     {"cases": ["a thread outside that spawns waits at the soft mark"]}),
    ("nobody waits for room", INJECTION, [("if (size() < injection_soft_capacity) return;\n    std::unique_lock", "if (size() < ~std::size_t{0}) return;\n    std::unique_lock")],
     {"cases": ["threads outside wait at the soft mark, and the crossing is counted", "a thread outside that spawns waits at the soft mark"]}),
    ("a runtime ends with a frame missing", SCHEDULER, [("if (left.made != left.pooled) {", "if (left.made < left.pooled) {")],
     {"cases": ["a runtime that ends with a frame missing or a fiber queued ends the program"]}),
    ("a runtime ends with a fiber queued", SCHEDULER, [("  if (!queues.injection_empty()) {\n", "  if (false) {\n")],
     {"cases": ["a runtime that ends with a frame missing or a fiber queued ends the program"]}),
    # The life of a fiber.
    ("a fiber that was cancelled before its start runs", RUNNER_HPP, [("if (cancel_scope::effective(f, epoch) != nullptr) {",
       "if (epoch == 0 && cancel_scope::effective(f, epoch) != nullptr) {")],
     {"cases": ["a fiber cancelled before its start ends without running"]}),
    ("a fiber ends in a scope of its own", RUNNER_HPP, [("if (f.scope != f.home) [[unlikely]]", "if (f.home == nullptr) [[unlikely]]")],
     {"cases": ["a fiber that ends inside a scope of its own ends the program"]}),
    ("tickets begin anew with a frame", "runtime/src/task/frame.hpp", [("    cancel_delivered = 0;\n",
       "    cancel_delivered = 0;\n    wait_ticket.store(0, std::memory_order_relaxed);\n")],
     {"cases": ["tickets go on when a frame is recycled"]}),
    # Waiting.
    ("a fiber keeps the reason of a wait that is over", WAIT, [("  steps.f.reason.set(nullptr);\n", "  if (steps.f.is_proxy()) steps.f.reason.set(nullptr);\n")],
     {"cases": ["a parked fiber says what it waits for, and no longer than that"]}),
    ("a thread keeps the reason of a wait that is over", WAIT, [("  steps.f.reason.set(nullptr);\n", "  if (!steps.f.is_proxy()) steps.f.reason.set(nullptr);\n")],
     {"cases": ["a parked fiber says what it waits for, and no longer than that"]}),
    ("a fiber woken before the switch parks", WAIT, [("    return f.word.load().has(word_view::notified) && ",
       "    return epoch_ == ~0ull && f.word.load().has(word_view::notified) && ")],
     {"cases": ["a wake before the switch keeps the fiber on its stack"]}),
    ("a cancellation wins over what is ready", WAIT, [("    if (ask && on.try_complete(node)) return wait_result::completed;\n    if (steps.cancelled()) return wait_result::cancelled;\n",
       "    if (steps.cancelled()) return wait_result::cancelled;\n    if (ask && on.try_complete(node)) return wait_result::completed;\n")],
     {"cases": ["what is ready wins over a cancellation"]}),
    ("a proxy keeps the fiber-locals of the thread before", "runtime/src/wait/self.cpp", [
        ("  drop_extras(proxy->own_record);  // the next thread starts with none\n", ""),
        ("    if (thread_proxy != nullptr) drop_extras(thread_proxy->own_record);\n", "")],
     {"cases": ["a thread that ends passes its proxy on, with its tickets"]}),
    ("a thread that ends keeps its proxy", "runtime/src/wait/self.cpp", [
        ("  proxy_pool::only().give(*proxy);\n", "")],
     {"cases": ["a thread that ends passes its proxy on, with its tickets"]}),
    ("who was taken out of a list stays marked as listed", "runtime/src/wait/wait_list.cpp", [
        ("  node.listed = false;\n}", "}")],
     {"cases": ["a waiter is taken out of its list once, however often it is tried"]}),
    # Time.
    ("a time that has passed is no yield", "runtime/src/time/sleep.cpp", [
        ("if (when <= from) return yield();", "if (when <= from) return;")],
     {"cases": ["a time that has passed lets others go first and takes no time", "a sleep is a cancellation point, at every length"]}),
    ("a near deadline is rounded to a tick", "runtime/src/time/timekeeper.cpp", [
        ("if (manual_ != nullptr || entry.when - now < exact_below) {", "if (manual_ != nullptr) {")],
     {"cases": ["a near deadline is kept to the nanosecond"]}),
    # The scheduler.
    ("a yield does not go behind what the ring has shed", QUEUES, [("  happened.set(true);\n", "")],
     {"cases": ["who spawns many and yields in between does not run ahead of them"]}),
    ("what was spawned last goes first for ever", QUEUES_HPP, [("    return w.queue.newest.empty() && w.queue.fresh_polls.get() < max_fresh_polls;",
       "    return w.queue.newest.empty();")],
     {"cases": ["what was spawned last goes first when its spawner waits, but not for ever"]}),
    ("what has started goes first like what has not", QUEUES_HPP, [("if (youngest == nullptr || has_started(youngest)) return false;",
       "if (youngest == nullptr) return false;")],
     {"cases": ["who waits hands over to the oldest if the youngest has started"]}),
    ("who yields to the slot goes behind the ring", WAIT, [
        ("const bool for_newest = w->count.lifo_hits.get() != hits;", "const bool for_newest = w->count.lifo_hits.get() < hits;")],
     {"cases": ["who yields to the slot takes its place there, with a full budget for the other"]}),
    ("who yields at the end of its budget leaves none", WAIT, [
        ("  w->budget.set(budget_per_tick);  // for those who come now\n", "")],
     {"cases": ["who yields at the end of its budget leaves a full one to those who come"]}),
    ("a claim that can't be kept is not given back", WORKERS, [("  idle_.return_claim(index);\n  return false;", "  return false;")],
     {"cases": ["a worker that could not be started can be started later"]}),
    ("a batch that was in no queue wakes nobody", QUEUES, [("  if (count > 1) w.pool.signal(&w);  // for", "  // for")],
     {"cases": ["who takes more than one from the injection queue tells a sleeper"]}),
    ("a stalled worker is never forgiven", WORKERS, [("  if ((seen & worker::stalled) != 0) {\n    stalled_.fetch_sub(1, std::memory_order_acq_rel);",
       "  if ((seen & worker::stalled) != 0) {")],
     {"cases": ["a stalled worker is marked once and its slot opened, until it polls again"]}),
    ("the slot of a stalled worker stays open", WORKERS, [("    run_queues::close_to_thieves(w);\n", "")],
     {"cases": ["a stalled worker is marked once and its slot opened, until it polls again"]}),
    # Stacks and joins.
    ("a sleeping worker trims no stacks", IDLE, [("  if (sched_.stacks.trim(stack_trim_batch)) return;  // housekeeping first, in small bites: work may come\n",
       "")],
     {"cases": ["a worker keeps 32 stacks, and trims what the pool has too many of before it sleeps"]}),
    ("a worker keeps all stacks it ever had", RUNNER, [("  if (w.run.spare_count.get() >= stack_cache_limit) return_spares(w);\n", "")],
     {"cases": ["a worker keeps 32 stacks, and trims what the pool has too many of before it sleeps"]}),
    ("a join never yields", DISPATCHER, [("  if (fiber* const f = turn_of_others(w)) return {f, true};\n",
       "  if (is_due(w, w.count.polls.get() + 1)) (void)poll_is_due(w, w.count.polls.get() + 1);\n")],
     {"cases": ["a long fork-join starves nobody"]}),
    # Nurseries and scopes.
    ("a passed deadline of a scope is left to others", "runtime/src/time/timekeeper.cpp", [
        ("  if (entry.when <= now) {\n    entry.target->cancel", "  if (entry.when < platform::time_point::min() + platform::nanoseconds(1)) {\n    entry.target->cancel")],
     {"cases": ["a scope whose time has passed is cancelled before anything in it runs"]}),
    ("a nursery that is used again is asked to stop", "nursery/src/nursery.cpp", [
        ("  n.asked_to_stop.store(false, std::memory_order_relaxed);\n", "")],
     {"cases": ["a new nursery remembers nothing of the one before"]}),
    ("a nursery that is used again has a reason", "nursery/src/nursery.cpp", [
        ("  n.asked_to_stop.store(false, std::memory_order_relaxed);\n  n.forget_reason();\n", "  n.asked_to_stop.store(false, std::memory_order_relaxed);\n")],
     {"cases": ["a new nursery remembers nothing of the one before"]}),
    ("failures that nobody has read are forgotten", "nursery/src/core.cpp", [
        ("      if (!f.received) report_lost_failure(f.what.who, f.what.what);\n", "      (void)f;\n")],
     {"cases": ["all failures can be read, and those nobody reads are reported"]}),
    ("failures that were read are reported", "nursery/src/nursery.cpp", [
        ("    for (auto& f : more->failures) f.received = true;  // all of them", "    // all of them")],
     {"cases": ["all failures can be read, and those nobody reads are reported"]}),
    ("a token that is asked for late is not stopped", "nursery/src/nursery.cpp", [
        ("    if (core_->asked_to_stop.load(std::memory_order_relaxed)) stop->request_stop();\n", "")],
     {"cases": ["a stop token that is asked for after the shutdown is stopped"]}),
    ("a shutdown names those that have ended", "nursery/src/nursery.cpp", [
        ("if (!has_finished(task)) names.push_back", "names.push_back")],
     {"cases": ["shutdown asks, waits, cancels and names the stragglers"]}),
    ("a value is taken twice", "nursery/src/tasks.cpp", [
        ("if (std::exchange(handle.block->outcome, task_outcome::taken) == task_outcome::taken) {", "if (handle.block == nullptr) {")],
     {"cases": ["results: values, references, move-only, void"]}),
    ("a task is used after its nursery has ended", "nursery/src/tasks.cpp", [
        ("    if (n.life.load(std::memory_order_acquire) == life) return;\n    leave();", "    if (n.life.load(std::memory_order_acquire) >= life) return;\n    leave();")],
     {"cases": ["a task used after its nursery has died is a detected misuse"]}),
    ("a dropped result is destroyed with its nursery", "nursery/src/tasks.cpp", [
        ("  if (task.dropped.load(std::memory_order_acquire)) {\n    destroy_result(task);", "  if (task.dropped.load(std::memory_order_acquire)) {\n    if (!in_place) destroy_result(task);")],
     {"cases": ["results are destroyed once, whoever lets go last"]}),
    ("a result that is dropped after its end stays", "nursery/src/tasks.cpp", [
        ("  destroy_result(task);\n  if (!task.origin.shared) return home.store.recycle", "  if (!task.origin.shared) return home.store.recycle")],
     {"cases": ["results are destroyed once, whoever lets go last"]}),
    # Failures.
    ("a second failure without memory is lost", "nursery/src/core.cpp", [
        ("  report_lost_failure(name, what);\n", "")],
     {"cases": ["a failure that there is no memory for arrives all the same"]}),
    # Channels.
    ("who is woken for nothing goes to the end of the line", "runtime/src/wait/wait_list.cpp", [
        ("while (successor != nullptr && static_cast<ordered_waiter*>(successor)->place < node.place) {", "while (successor != nullptr) {")],
     {"cases": ["a waiter woken for nothing keeps its place"]}),
    ("a channel that is closed again takes another reason", "channel/src/core.cpp", [
        ("    if (closed_.load(std::memory_order_relaxed)) return false;\n    why_closed_", "    why_closed_")],
     {"cases": ["closing again, even halfway through a close, is harmless and says no"]}),
    ("what nobody will receive stays", "channel/src/core.cpp", [
        ("    keep_elements(nowhere, wakes);\n  }\n  buffer_.destroy_all();", "    keep_elements(nowhere, wakes);\n  }")],
     {"cases": ["the last receiver gives waiting senders their elements back and destroys what was buffered"]}),
    ("a channel operation of a cancelled fiber begins", "channel/src/operations.cpp", [
        ("  begin_operation(at);\n  const channel_status how = node.sends", "  const channel_status how = node.sends")],
     {"cases": ["no operation of a cancelled fiber begins, with a deadline or without"]}),
    ("the fast path of a cancelled fiber begins", "channel/src/operations.cpp", [
        ("c.carries_words() && nothing_pending(at) && c.lock", "c.carries_words() && c.lock")],
     {"cases": ["no operation of a cancelled fiber begins, with a deadline or without"]}),
    ("who only tries to send spends nothing", "channel/src/operations.cpp", [
        ("  spend_budget(at);\n  return attempt_send", "  return attempt_send")],
     {"cases": ["what only tries takes from the budget and never yields"]}),
    ("who only tries to receive spends nothing", "channel/src/operations.cpp", [
        ("  spend_budget(at);\n  return attempt_recv", "  return attempt_recv")],
     {"cases": ["what only tries takes from the budget and never yields"]}),
    ("the last sender leaves the channel open", "channel/src/operations.cpp", [
        ("== 1) (void)c.close(nullptr);", "== 0) (void)c.close(nullptr);")],
     {"cases": ["the last sender closes the channel"]}),
    # Blocking calls.
    ("the thread that became idle first is used first", "runtime/src/blocking/pool.cpp", [
        ("  me.next_idle = idle_;\n  idle_ = &me;\n", "  me.next_idle = nullptr;\n  member** at = &idle_;\n  while (*at != nullptr) at = &(*at)->next_idle;\n  *at = &me;\n")],
     {"cases": ["a thread that became idle last is used first"]}),
    ("a virtual clock passes the time of a blocking call", QUIESCENCE, [
        (" && !sched_.blocking.anybody_waits()", "")],
     {"cases": ["a virtual clock stands still while a fiber waits for a blocking call"]}),
    # Descriptors.
    ("a worker that is held up is not helped", MONITOR, [
        ("    if (!polled && w->io.poll_for_owner()) any = true;\n", "    (void)polled;\n")],
     {"cases": ["a worker that is held up does not hold up the operations of others"]}),
    ("what came although it was late is too late", "runtime/src/io/descriptor.cpp", [
        ("  if (op.result != -ECANCELED) return op.result;\n  if (ended == wait_result::timed_out)", "  if (op.result != -ECANCELED && ended != wait_result::timed_out) return op.result;\n  if (ended == wait_result::timed_out)")],
     {"cases": ["a deadline ends an operation, in time is in time", "what comes too late is timed_out, and what is there counts although it is late"]}),
    ("a descriptor is closed under its users", "runtime/src/io/descriptor.cpp", [
        ("  return closing_ && plain_uses_ == 0 && uses_ == nullptr;", "  return closing_;")],
     {"cases": ["descriptors that are closed and made again never see each other's bytes"]}),
    # Sockets.
    ("an attempt that has failed stays in the set", "io/src/net/connect.cpp", [
        ("    (void)call_on(set_, [fd](int set) { return ::epoll_ctl(set, EPOLL_CTL_DEL, fd, nullptr); });\n    ::close(fd);", "    ::close(fd);")],
     {"cases": ["an attempt that has failed is forgotten, although there is a copy of its descriptor"]}),
    # Files.
    ("an appending write moves the position", "io/src/fs/open_file.cpp", [
        ("if (positioned && !f->appends_ && result > 0)", "if (positioned && result > 0)")],
     {"cases": ["a file is opened as it was asked for"]}),
    ("io_uring appends at the beginning", "platform/src/io/uring.cpp", [("        e.rw_flags = flags;\n", "")],
     {"cases": ["what fibers append at once does not overwrite each other", "what is appended goes to the end, or stays out when it is too late"]}),
    ("a thread appends at the beginning", "platform/src/io/system_calls.cpp", [("  if (op.flags == 0) return", "  return")],
     {"cases": ["what fibers append at once does not overwrite each other", "what is appended goes to the end, or stays out when it is too late"]}),
    ("a pipe that nobody has written to has ended", "io/src/fs/open_file.cpp", [
        ("  if (f != nullptr && f->awaits_writer_ && !to.empty()) {", "  if (f != nullptr && f->awaits_writer_ && to.size() == ~std::size_t{0}) {")],
     {"cases": ["a named pipe that nobody has written to yet is waited for, and no end"]}),
    ("a file that is closed is told twice", "io/src/fs/file.cpp", [
        ("    ~closing() { it.descriptor().close(); }", "    ~closing() {}")],
     {"cases": ["a file that is closed or none is a bad descriptor", "a cancelled fiber opens and closes no file by halves"]}),
    ("a link is replaced by a file", "io/src/fs/replacement.cpp", [
        ("const bool is_link = std::filesystem::is_symlink(path, ec);", "const bool is_link = false;")],
     {"cases": ["a file that is written is the old one or the new one"]}),
    ("a copy goes over what is there", "io/src/fs/replacement.cpp", [
        ("const unsigned flags = must_be_new ? RENAME_NOREPLACE : 0;", "const unsigned flags = 0;\n  (void)must_be_new;")],
     {"cases": ["a copy does not go over what has come meanwhile"]}),
    ("a link to no directory is an error of a walk", "io/src/fs/walk.cpp", [
        ("folder_.is_symlink() && (ec == std::errc::not_a_directory)", "folder_.is_symlink() && ec == std::errc::no_link")],
     {"cases": ["a walk that follows links enters each directory once"]}),
    # Processes and signals.
    ("a child ignores SIGPIPE", "io/src/process/spawn.cpp", [
        ("POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF", "POSIX_SPAWN_SETSIGMASK")],
     {"cases": ["a closed pipe is an error and no signal, and the end for those who read"]}),
    ("descriptors of a child run over each other", "io/src/process/spawn.cpp", [
        ("::fcntl(fd, F_DUPFD_CLOEXEC, 3)", "::fcntl(fd, F_DUPFD_CLOEXEC, 0)")],
     {"cases": ["a child's descriptors do not run over each other where low numbers are free"]}),
    ("a slot of signals remembers what came before", "io/src/process/signals.cpp", [
        ("    slot_->pending.store(0, std::memory_order_relaxed);\n", "")],
     {"cases": ["signals that nobody took are not remembered for the next object"]}),
    ("a detached child is waited for by nobody", "io/src/process/detached_children.cpp", [
        ("reap(pidfd_.get(), info) == 0", "reap(pidfd_.get(), info, 0x01000000 /* WNOWAIT */) == 0")],
     {"cases": ["a detached child goes on, and is reaped when it ends"]}),
    # Streams.
    ("a buffer that has grown stays", "io/src/stream/byte_buffer.cpp", [
        ("  bytes_.reset();\n  capacity_ = 0;\n}", "}")],
     {"cases": ["a large read goes past the buffer, and a buffer that has grown is given back"]}),
    ("what was not flushed is reported while unwinding", "io/src/stream/buffered_writer.cpp", [
        ("if (failed_ || std::uncaught_exceptions() > exceptions_) return;", "if (failed_) return;")],
     {"cases": ["what was not flushed is reported, unless that is no surprise"]}),
    ("what could not be flushed is reported", "io/src/stream/buffered_writer.cpp", [
        ("if (failed_ || std::uncaught_exceptions() > exceptions_) return;", "if (std::uncaught_exceptions() > exceptions_) return;")],
     {"cases": ["what was not flushed is reported, unless that is no surprise"]}),
    ("reading to the end takes more than one byte over the limit", "io/src/stream/stream.cpp", [
        ("limit - taken < step ? limit - taken + 1 : step", "step")],
     {"cases": ["reading to the end takes no more than one byte over the limit, and gives it back"]}),
    ("a read of nothing is no cancellation point", "io/src/stream/stream.cpp", [
        ("  ec.clear();\n  if (into.empty()) check_cancelled();", "  ec.clear();")],
     {"cases": ["every function on streams is a cancellation point, also if there is nothing to do"]}),
    ("a shutdown is asked for twice", "io/src/stream/shutdown.cpp", [
        ("      if (requested()) return false;\n", "")],
     {"cases": ["a shutdown is requested once, and everybody sees it"]}),
    ("a callback that runs is not waited for", "io/src/stream/shutdown.cpp", [
        ("while (calls_ == &hook && runs_ != shutdown_caller::current()) {", "while (false) {")],
     {"cases": ["who takes a callback back while it runs waits for its end"]}),
    ("who takes back the callback that it runs waits for itself", "io/src/stream/shutdown.cpp", [
        ("while (calls_ == &hook && runs_ != shutdown_caller::current()) {", "while (calls_ == &hook) {")],
     {"cases": ["a callback may take back itself and others, and register more"]}),
    ("work begins after the request", "io/src/stream/shutdown.cpp", [
        ("    if (unless_requested && requested()) return nullptr;\n", "    (void)unless_requested;\n")],
     {"cases": ["work that need not begin is refused after the request, none slips past it"]}),
    ("the youngest work is named first", "io/src/stream/shutdown.cpp", [
        ("    std::reverse(all.begin(), all.end());\n", "")],
     {"cases": ["work that is not done in time is named, with its place"]}),
    ("a duplex end that is assigned to stays open", "io/src/stream/duplex.cpp", [
        ("    close();\n    core_ = std::move(other.core_);", "    core_ = std::move(other.core_);")],
     {"cases": ["a duplex end that another one is moved onto is closed"]}),
    ("a duplex spends no budget", "io/src/stream/duplex.cpp", [
        ("  begin_operation(at);\n  wait_result how", "  wait_result how")],
     {"cases": ["who never has to wait at a duplex lets others have their turn", "every function on streams is a cancellation point, also if there is nothing to do"]}),
    # Testing.
    ("quiescence is told while somebody runs", QUIESCENCE, [("  while (everybody_blocked()) {\n    waiter*", "  for (;;) {\n    waiter*")],
     {"cases": ["wait_all_blocked returns when all others wait"]}),
    ("chaos without yields yields", "runtime/src/testing/chaos.cpp", [("      if (!wanted_.yields || !happens(w, yield_odds)) return false;",
       "      if (!happens(w, yield_odds)) return false;")],
     {"cases": ["each kind of chaos can be had alone"]}),
    # Nurseries and scopes.
    ("a spawn that fails stays counted", "nursery/src/tasks.cpp", [
        ("    if (counted) n.live.spawn_failed(by_owner);\n", "    (void)counted;\n")],
     {"cases": ["out of memory halfway through a spawn loses nothing"]}),
    ("a spawn that fails keeps its closure", "nursery/src/tasks.cpp", [
        ("    task_type_of(task).destroy_closure(task);\n    unreserve_task", "    unreserve_task")],
     {"cases": ["out of memory halfway through a spawn loses nothing"]}),
    ("the innermost cancelled scope is unwound to", "runtime/src/cancel/scope.cpp", [
        ("if (s->cancels() && in_flight <= at_its_opening) outermost = s;", "if (s->cancels() && in_flight <= at_its_opening && outermost == nullptr) outermost = s;")],
     {"cases": ["the outermost cancelled scope is the one to unwind to"]}),
    ("a swallowed cancellation is reported each time", "runtime/src/cancel/scope.cpp", [
        ("if (times == 1) report_swallowed", "if (times != 0) report_swallowed")],
     {"cases": ["a swallowed cancellation is counted and named"]}),
]
