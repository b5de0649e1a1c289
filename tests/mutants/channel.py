# SPDX-License-Identifier: BSL-1.0
"""Flaws of the granted lock and of channels."""
LOCK, LOCK_INSIDE = "platform/src/biased_lock.cpp", "platform/internal/ramie/platform/biased_lock.hpp"
CHANNEL, CHANNEL_INSIDE = "channel/src/core.cpp", "channel/src/core.hpp"

MUTANTS = [
    ("revoked without a wait", LOCK, [("inside_[granted_cell_].load(std::memory_order_acquire)", "false")], ["granted_lock"]),
    ("one cell for all parties", LOCK_INSIDE, [("auto& cell = inside_[me->cell];", "auto& cell = inside_[0];"),
                                               ("inside_[me->cell].store(false", "inside_[0].store(false"),
                                               ("taken_twice();", ";")], ["granted_lock"]),
    ("in by a grant that is gone", LOCK_INSIDE, [("if (granted_.load(std::memory_order_relaxed) == me->id) [[likely]] {  // 3", "if (true) {")], ["granted_lock"]),
    ("granted while held by a grant", LOCK, [("granted_.store(0, std::memory_order_relaxed);", "")], ["granted_lock"]),
    ("let go of from outside", LOCK_INSIDE, [
        ("    if (asked_.load(std::memory_order_relaxed)) [[unlikely]]\n      consider_letting_go();\n"
         "    inside_[me->cell].store(false, std::memory_order_release);  // pairs with the acquire of the revoker\n",
         "    inside_[me->cell].store(false, std::memory_order_release);\n    if (asked_.load()) consider_letting_go();\n")], ["lease_ends_late"]),
    ("a close that tells no receiver", CHANNEL, [("    refuse_receivers(wakes);\n", "")], ["channel_meets_close"]),
    ("a close that forgets its senders", CHANNEL, [("  keep_elements(leftovers_, wakes);\n  return true;", "  return true;")], ["channel_makes_room"]),
    ("listed on a closed channel", CHANNEL_INSIDE, [("if (closed_.load(std::memory_order_relaxed)) [[unlikely]]\n    return channel_status::closed;", ""), ("return closed_.load(std::memory_order_relaxed) ? channel_status::closed : channel_status::would_block;", "return channel_status::would_block;")],
     ["channel_meets_close"]),
    ("nobody moves up", CHANNEL_INSIDE, [("if (!senders_.empty()) refill(wakes);", "")], ["channel_moves_up"]),
    ("the buffer before the one who waits", CHANNEL_INSIDE, [("if (!receivers_.empty() && hand_over(receivers_, element, wakes)) return channel_status::ok;", "")], ["channel_meeting"]),
    ("the senders' elements are dropped", CHANNEL, [("        leftovers.push(node->element);\n", "")], ["channel_meets_close"]),
    ("the value of nothing is no exception", "channel/include/ramie/received.hpp",
     [("if (!value_.has_value()) [[unlikely]]\n      throw", "if (false)\n      throw")],
     {"cases": ["the value of a receive that found nothing is an exception that says why"]}),
    ("a slow reader is not told what it missed", "channel/src/broadcast_log.cpp",
     [("at + 1, at - position}", "at + 1, 0}")],
     {"cases": ["a receiver that falls behind is told how many it lost"]}),
    ("a closed broadcast takes messages", "channel/src/broadcast_log.cpp",
     [("    if (closed()) return false;\n    const auto", "    const auto")],
     {"cases": ["a broadcast closes: by hand, or with its last sender"]}),
    ("every close of a broadcast is the first", "channel/src/broadcast_log.cpp",
     [("    if (closed()) return false;\n    closed_.store(", "    closed_.store(")],
     {"cases": ["a broadcast closes: by hand, or with its last sender", "a watch shows the latest value, and that it changed"]}),
    ("an empty oneshot is closed", "channel/include/ramie/oneshot.hpp",
     [('::ramie::channel_internal::no_such_oneshot("oneshot_sender::is_closed");', "return true;")],
     {"cases": ["handles without anything behind them"]}),
]
