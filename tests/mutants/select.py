# SPDX-License-Identifier: BSL-1.0
"""Flaws of select, of receives and of task handles: see run.py for what the parts of a mutant are."""

SELECT, ELEMENT = "channel/src/select.cpp", "channel/include/ramie/detail/element.hpp"

BROADCAST_LOG, ONESHOT = "channel/src/broadcast_log.cpp", "channel/src/oneshot_core.hpp"
OPERATIONS, CORE, CORE_INSIDE = "channel/src/operations.cpp", "channel/src/core.cpp", "channel/src/core.hpp"
TASKS, NURSERY, ARENA = "nursery/src/tasks.cpp", "nursery/src/nursery.cpp", "nursery/src/arena.cpp"
WAIT = "runtime/src/wait/wait.cpp"

MUTANTS = [
    ("waiting cases are listed as they were written", SELECT, [
        ("    select_case& c = *cases_[order_.data()[k]];\n    if (!on_channel(c)) continue;",
         "    select_case& c = *cases_[k];\n    if (!on_channel(c)) continue;")],
     {"cases": ["of several cases on one channel each wins its share of the waits"]}),
    ("joinables are asked as they were written", SELECT, [
        ("    const std::size_t i = order_.data()[k];\n    if (on_source(*cases_[i]) &&",
         "    const std::size_t i = k;\n    if (on_source(*cases_[i]) &&")],
     {"cases": ["of several joinables that come true together each wins its share",
                "of several joinables that have come true while a select lists itself each wins its share"]}),
    ("a case moves its element twice", ELEMENT, [
        ("if constexpr (std::is_nothrow_move_constructible_v<T>) {", "if constexpr (true) {")],
     {"cases": ["whichever way an element is received, it is moved once, and stays where it is if that fails",
                "a select that waits gets its element by one move, which is the sender's"]}),
    ("the element of a case stays in it", ELEMENT, [("~emptied() { value.reset(); }", "~emptied() {}")],
     {"cases": ["the element of a case is gone when its handler has ended, also by an exception"]}),
    ("a broadcast keeps what nobody can read", BROADCAST_LOG, [
        ("!= 1 || is_watch_) return;", "!= 1 || is_watch_ || true) return;")],
     {"cases": ["a broadcast keeps nothing for nobody"]}),
    ("a broadcast keeps what nobody waits for", BROADCAST_LOG, [
        ("if (is_watch_ || readers_.load(std::memory_order_relaxed) != 0) ring_", "ring_")],
     {"cases": ["a broadcast keeps nothing for nobody"]}),
    ("a broadcast forgets what somebody can read", BROADCAST_LOG, [
        ("if (readers_.fetch_sub(1, std::memory_order_relaxed) != 1 || is_watch_) return;",
         "if (readers_.fetch_sub(1, std::memory_order_relaxed) == 0 || is_watch_) return;")],
     {"cases": ["a broadcast keeps nothing for nobody"]}),
    ("a broadcast forgets what is not posted for those who left", BROADCAST_LOG, [
        ("if (next >= oldest()) (at++)->swap", "(at++)->swap")],
     {"cases": ["a broadcast that forgets keeps what is sent meanwhile"]}),
    ("a oneshot receiver leaves while it is told", ONESHOT, [
        ("  for (platform::backoff turn; !core.wake_done.load(std::memory_order_acquire);) turn.wait();\n", "")],
     ["oneshot_left", "oneshot_left_by_a_sender"]),
    ("a oneshot receiver is told before it is woken", ONESHOT, [
        ("    waker(core.who, core.ticket).wake();\n    core.wake_done.store(true, std::memory_order_release);",
         "    core.wake_done.store(true, std::memory_order_release);\n    waker(core.who, core.ticket).wake();")],
     ["oneshot_left"]),
    ("a handle outside the tree is not announced", TASKS, [
        ("announced_(role_of_caller(n, at) == caller_role::none) {", "announced_(false) {")],
     ("handle_dropped_as_its_nursery_ends",)),
    ("the end of a nursery does not wait for handles outside its tree", NURSERY, [
        ("  while (n.has_visitors()) spin_yield();  // 3\n", "")],
     ("handle_dropped_as_its_nursery_ends",)),
    ("a wait for a task believes every wake", TASKS, [
        ("  } while (!has_finished(*handle.block));", "  } while (false);")],
     {"cases": ["a wait for a task ends with the task, though it is woken by mistake"]}),
    ("a node keeps the outcome of its last wait", WAIT, [("  node.outcome = 0;\n", "")],
     {"cases": ["a node may be waited with again"]}),
    ("a plain thread does not ask once more when its time is up", WAIT, [("    if (steps.too_late()) return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;",
       "    if (steps.too_late()) return !steps.f.is_proxy() && on.try_complete(node) ? wait_result::completed : wait_result::timed_out;")],
     {"cases": ["what has come counts, though the deadline has passed", "who is too late looks once more, fiber or thread"]}),
    ("a plain thread looks at its clock before it looks at what it got", WAIT, [("      case round_end::completed: return wait_result::completed;\n",
       "      case round_end::completed:\n        if (steps.f.is_proxy() && steps.too_late()) break;\n        return wait_result::completed;\n")],
     {"cases": ["what has come counts, though the deadline has passed"]}),
    ("a fiber does not ask once more when its time is up", WAIT, [("    if (steps.too_late()) return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;",
       "    if (steps.too_late()) return steps.f.is_proxy() && on.try_complete(node) ? wait_result::completed : wait_result::timed_out;")],
     {"cases": ["what has come counts, though the deadline has passed", "who is too late looks once more, fiber or thread"]}),
    ("what a destructor makes in its arena is forgotten", ARENA, [
        ("    youngest_ = record->older;  // a destructor may make more\n    record->destroy(record->object);",
         "    record->destroy(record->object);\n    youngest_ = record->older;")],
     {"cases": ["what a destructor makes in its arena is destroyed, too"]}),
    ("a receiver is told under the channel's lock", OPERATIONS, [
        ("  channel_wakes wakes(c);\n  channel_guard hold(c.lock, lock_user_of(at));\n  return c.try_send(element, wakes);",
         "  channel_guard hold(c.lock, lock_user_of(at));\n  channel_wakes wakes(c);\n  return c.try_send(element, wakes);")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a sender is told under the channel's lock", OPERATIONS, [
        ("  channel_wakes wakes(c);\n  channel_guard hold(c.lock, lock_user_of(at));\n  return c.try_recv(to, wakes);",
         "  channel_guard hold(c.lock, lock_user_of(at));\n  channel_wakes wakes(c);\n  return c.try_recv(to, wakes);")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a close tells under the channel's lock", CORE, [
        ("    channel_wakes wakes(*this);\n    channel_guard hold(lock, lock_user_of(current_context()));\n    if (closed_",
         "    channel_guard hold(lock, lock_user_of(current_context()));\n    channel_wakes wakes(*this);\n    if (closed_")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a select tells under the channel's lock", SELECT, [
        ("    channel_wakes wakes(*c.channel);\n    channel_guard hold(c.channel->lock, lock_user_of(at));",
         "    channel_guard hold(c.channel->lock, lock_user_of(at));\n    channel_wakes wakes(*c.channel);")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a receiver is completed under a granted lock", OPERATIONS, [
        ("  fiber* const receiver = c.hand_word_over(element);\n", "  fiber* const receiver = c.hand_word_over(element);\n  if (receiver != nullptr) complete(*receiver);\n"),
        ("  complete(*receiver);\n  return channel_status::ok;", "  return channel_status::ok;")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a sender is completed under a granted lock", OPERATIONS, [
        ("  fiber* const sender = c.take_word_over(to);\n", "  fiber* const sender = c.take_word_over(to);\n  if (sender != nullptr) complete(*sender);\n"),
        ("  complete(*sender);\n  return channel_status::ok;", "  return channel_status::ok;")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a select takes something else before the lock it was woken for", SELECT, [
        ("    if (on_source(c) && c.source_node->outcome != 0 && try_take(c)) return i;\n", "    (void)c;\n")],
     {"cases": ["a select that was woken for a lock tries it before it takes something else"]}),
    ("a select that finds a source ready is not woken", SELECT, [
        ("    if (claim(main)) complete(*main.who);", "    if (false) complete(*main.who);")],
     {"cases": ["of several joinables that have come true while a select lists itself each wins its share"]}),
]
