# SPDX-License-Identifier: BSL-1.0
"""Flaws of select, of receives and of task handles: see run.py for what the parts of a mutant are."""

SELECT, ELEMENT = "channel/src/select.cpp", "channel/include/ramie/detail/element.hpp"

BULLETIN, ONESHOT = "channel/src/bulletin.cpp", "channel/src/oneshot_core.hpp"
OPERATIONS, CORE, CORE_INSIDE = "channel/src/operations.cpp", "channel/src/core.cpp", "channel/src/core.hpp"
TASKS, NURSERY, ARENA = "nursery/src/tasks.cpp", "nursery/src/nursery.cpp", "nursery/src/arena.cpp"
WAIT = "runtime/src/wait/wait.cpp"

MUTANTS = [
    ("waiting cases are listed as they were written", SELECT, [
        ("    select_case& c = *cases_[order_.data()[k]];\n    if (!on_channel(c)) continue;",
         "    select_case& c = *cases_[k];\n    if (!on_channel(c)) continue;")],
     {"cases": ["of several cases on one channel each wins its share of the waits"]}),
    ("waiting joinables are listed as they were written", SELECT, [
        ("    const std::size_t i = order_.data()[k];\n    select_case& c = *cases_[i];\n    if (!on_joinable(c)) continue;",
         "    const std::size_t i = k;\n    select_case& c = *cases_[i];\n    if (!on_joinable(c)) continue;")],
     {"cases": ["of several joinables that have come true while a select lists itself each wins its share"]}),
    ("joinables are asked as they were written", SELECT, [
        ("    const std::size_t i = order_.data()[k];\n    if (!on_joinable(*cases_[i]) ||",
         "    const std::size_t i = k;\n    if (!on_joinable(*cases_[i]) ||")],
     {"cases": ["of several joinables that come true together each wins its share"]}),
    ("a case moves its element twice", ELEMENT, [
        ("if constexpr (std::is_nothrow_move_constructible_v<T>) {", "if constexpr (true) {")],
     {"cases": ["whichever way an element is received, it is moved once, and stays where it is if that fails",
                "a select that waits gets its element by one move, which is the sender's"]}),
    ("the element of a case stays in it", ELEMENT, [("~emptied() { value.reset(); }", "~emptied() {}")],
     {"cases": ["the element of a case is gone when its handler has ended, also by an exception"]}),
    ("a broadcast keeps what nobody can read", BULLETIN, [
        ("!= 1 || is_watch_) return;", "!= 1 || is_watch_ || true) return;")],
     {"cases": ["a broadcast keeps nothing for nobody"]}),
    ("a broadcast keeps what nobody waits for", BULLETIN, [
        ("if (is_watch_ || readers_.load(std::memory_order_relaxed) != 0) ring_", "ring_")],
     {"cases": ["a broadcast keeps nothing for nobody"]}),
    ("a broadcast forgets what somebody can read", BULLETIN, [
        ("if (readers_.fetch_sub(1, std::memory_order_relaxed) != 1 || is_watch_) return;",
         "if (readers_.fetch_sub(1, std::memory_order_relaxed) == 0 || is_watch_) return;")],
     {"cases": ["a broadcast keeps nothing for nobody"]}),
    ("a broadcast forgets what is not posted for those who left", BULLETIN, [
        ("if (next >= oldest()) (at++)->swap", "(at++)->swap")],
     {"cases": ["a broadcast that forgets keeps what is sent meanwhile"]}),
    ("a oneshot receiver leaves while it is told", ONESHOT, [
        ("  for (platform::backoff turn; !core.told.load(std::memory_order_acquire);) turn.wait();\n", "")],
     ["oneshot_left", "oneshot_left_by_a_sender"]),
    ("a oneshot receiver is told before it is woken", ONESHOT, [
        ("    waker(core.who, core.ticket).wake();\n    core.told.store(true, std::memory_order_release);",
         "    core.told.store(true, std::memory_order_release);\n    waker(core.who, core.ticket).wake();")],
     ["oneshot_left"]),
    ("a handle outside the tree is not announced", TASKS, [
        ("announced_(kinship_to(n, at) == kinship::none) {", "announced_(false) {")],
     ("handle_dropped_as_its_nursery_ends",)),
    ("the end of a nursery does not wait for handles outside its tree", NURSERY, [
        ("  while (n.visitors.load(std::memory_order_acquire) != 0) let_others_pass();  // 3\n", "")],
     ("handle_dropped_as_its_nursery_ends",)),
    ("a wait for a task believes every wake", TASKS, [
        ("  } while (!has_finished(*handle.record));", "  } while (false);")],
     {"cases": ["a wait for a task ends with the task, though it is woken by mistake"]}),
    ("a node keeps the outcome of its last wait", WAIT, [("  node.outcome = 0;\n", "")],
     {"cases": ["a node may be waited with again"]}),
    ("a plain thread does not ask once more when its time is up", WAIT, [
        ("      return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;\n    }\n  }\n}",
         "      return wait_result::timed_out;\n    }\n  }\n}")],
     {"cases": ["what has come counts, though the deadline has passed", "who is too late looks once more, fiber or thread"]}),
    ("a plain thread looks at its clock before it looks at what it got", WAIT, [
        ("    if (node.outcome != 0) return wait_result::completed;\n    on.unpublish(node);\n    if (deadline != never && ",
         "    on.unpublish(node);\n    if (node.outcome != 0 && deadline == never) return wait_result::completed;\n    if (deadline != never && ")],
     {"cases": ["what has come counts, though the deadline has passed"]}),
    ("a fiber does not ask once more when its time is up", WAIT, [
        ("    if (clock.rang()) return on.try_complete(node) ? wait_result::completed : wait_result::timed_out;",
         "    if (clock.rang()) return wait_result::timed_out;")],
     {"cases": ["what has come counts, though the deadline has passed", "who is too late looks once more, fiber or thread"]}),
    ("what a destructor makes in its arena is forgotten", ARENA, [
        ("    youngest_ = will->older;  // a destructor may make more\n    will->destroy(will->object);",
         "    will->destroy(will->object);\n    youngest_ = will->older;")],
     {"cases": ["what a destructor makes in its arena is destroyed, too"]}),
    ("a receiver is told under the channel's lock", OPERATIONS, [
        ("  will_tell later(c);\n  channel_guard hold(c.lock, party_of(at));\n  return c.try_send(element, later);",
         "  channel_guard hold(c.lock, party_of(at));\n  will_tell later(c);\n  return c.try_send(element, later);")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a sender is told under the channel's lock", OPERATIONS, [
        ("  will_tell later(c);\n  channel_guard hold(c.lock, party_of(at));\n  return c.try_recv(to, later);",
         "  channel_guard hold(c.lock, party_of(at));\n  will_tell later(c);\n  return c.try_recv(to, later);")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a close tells under the channel's lock", CORE, [
        ("    will_tell later(*this);\n    channel_guard hold(lock, party_of(look_around()));\n    if (closed_",
         "    channel_guard hold(lock, party_of(look_around()));\n    will_tell later(*this);\n    if (closed_")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a select tells under the channel's lock", SELECT, [
        ("    will_tell later(*c.channel);\n    channel_guard hold(c.channel->lock, party_of(at));",
         "    channel_guard hold(c.channel->lock, party_of(at));\n    will_tell later(*c.channel);")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
    ("a partner is met and told under a granted lock", CORE_INSIDE, [
        ("    partner = first->who;\n    return true;\n  });", "    partner = first->who;\n    complete(*partner);\n    return true;\n  });"),
        ("  reach(channel_moment::will_complete, *this);\n  complete(*partner);\n  return true;", "  reach(channel_moment::will_complete, *this);\n  return true;")],
     {"cases": ["nobody is told under a channel's lock"], "checks": True}),
]
