# SPDX-License-Identifier: BSL-1.0
"""Flaws of operations on descriptors, and of the pipes of a duplex."""
REQUEST, SLEEPER = "runtime/src/io/request.hpp", "runtime/src/io/backend_sleep_flag.hpp"
PIPE = "io/src/stream/byte_pipe.hpp"

MUTANTS = [
    # Operations.
    ("a completion that wakes nobody", REQUEST, [("if (ticket != idle) fiber_wake(f, ticket);", "(void)f, (void)ticket;")], ["io_request"]),
    ("listed although it is done", REQUEST, [
        ("return state_.compare_exchange_strong(before, node.ticket, std::memory_order_release, std::memory_order_acquire);",
         "(void)before;\n    state_.store(node.ticket);\n    return true;")], ["io_request"]),
    ("asleep is not told before the look for a token", SLEEPER, [
        ("    asleep_.store(true, std::memory_order_relaxed);  // 1\n    platform::full_fence();                          // 2\n    if (!take_token()) sleep_in_backend();",
         "    if (!take_token()) {\n      asleep_.store(true);\n      sleep_in_backend();\n    }")], ["backend_sleep_flag"]),
    ("a thread that waits for a descriptor does not hear that it is closed", "runtime/src/io/descriptor.cpp",
     [("(void)!::eventfd_write(fd.get(), 1);", "")], {"cases": ["plain threads use descriptors as fibers do"]}),
    ("a thread looks at the clock before it looks at its descriptor", "runtime/src/io/descriptor.cpp", [
        ("      result = platform::try_at_once(op);\n      if (result == -EAGAIN && until != never &&", "      result = -EAGAIN;\n      if (until != never &&"),
        (">= until) result = -ETIMEDOUT;", ">= until) result = -ETIMEDOUT;\n      else result = platform::try_at_once(op);")],
     {"cases": ["what a plain thread finds when it looks again counts, though its time is up"]}),
    ("a descriptor that was given back is closed", "runtime/src/io/descriptor.cpp",
     [("  closing_ = true;  // nobody begins a use any more, so nobody closes it, either\n", "")],
     {"cases": ["a descriptor is taken over and given back"]}),
    ("a descriptor is given back while somebody uses it", "runtime/src/io/descriptor.cpp",
     [("  if (plain_uses_ != 0 || uses_ != nullptr) return -EBUSY;\n", "")],
     {"cases": ["a descriptor that somebody uses is not given back"]}),
    # Pipes of a duplex.
    ("listed at a pipe without a look", PIPE, [("    if (!(this->*waits)()) return false;\n", "    (void)waits;\n")], ["pipe"]),
    ("a read that frees room tells nobody", PIPE, [
        ("    call.result = read(call.into);\n    serve(call.wakes);", "    call.result = read(call.into);")], ["pipe"]),
    ("a pipe closed for its writers keeps them waiting", PIPE, [
        ("return size_ == capacity_ && !read_ended_ && write_error_ == 0;", "return size_ == capacity_;"), ("      size_ = 0;\n", "")], ["pipe_closed"]),
    ("who leaves a pipe stays listed", PIPE, [("    from.remove(node);", "    (void)node, (void)from;")], ["pipe_one_leaves", "pipe_disturbed"]),
    ("bytes moved for one who was not claimed", PIPE, [
        ("auto* const call = static_cast<pipe_read*>(readers_.claim_first());\n        if (call == nullptr) break;\n        call->result = read(call->into);",
         "auto* const call = static_cast<pipe_read*>(readers_.first());\n        if (call == nullptr) break;\n        call->result = read(call->into);\n"
         "        if (!readers_.claim_listed_first(*call)) continue;")], ["pipe_one_leaves"]),
    ("the list of a descriptor keeps its old place when the table grows", "platform/src/io/readiness.cpp",
     [("    if (first != nullptr) first->link = &first;  // it has moved\n", "")],
     {"cases": ["many fibers each get what was sent to them"]}),
    ("an operation that is done at once wakes no sleeper", "platform/src/io/readiness.cpp",
     [("  last_done_ = &op.next;\n  if (sleeping_) source_->interrupt();", "  last_done_ = &op.next;")],
     {"cases": ["a cancellation interrupts the thread that sleeps in wait()",
                "an operation that is done when it is submitted interrupts the thread that sleeps in wait()"]}),
    ("an operation that is done interrupts a thread that does not sleep", "platform/src/io/readiness.cpp",
     [("  if (sleeping_) source_->interrupt();\n}\n\nstd::size_t readiness_backend::hand_out", "  source_->interrupt();\n}\n\nstd::size_t readiness_backend::hand_out")],
     {"cases": ["what is done before wait() sleeps interrupts nobody"]}),
    ("who waits to read is not told of a hang-up", "platform/src/io/readiness.cpp",
     [("e.events & (POLLERR | POLLHUP | POLLNVAL) ? ~0u : e.events", "e.events")],
     {"cases": ["a hang-up ends a read that waits, although nothing is to be read"]}),
]
