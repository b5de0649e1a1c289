# SPDX-License-Identifier: BSL-1.0
"""Flaws of stacks that change sides: users' allocators under a runtime, ramie's stacks under boost::context::fiber."""
POOL, POOL_INSIDE = "platform/src/stack_pool.cpp", "platform/internal/ramie/platform/stack_pool.hpp"
SOURCE, SUPPLIED, RAW = "runtime/include/ramie/stack_source.hpp", "runtime/src/stacks/supplied_stacks.cpp", "runtime/src/stacks/raw_stacks.cpp"

MUTANTS = [
    ("room on whatever stack it is", POOL_INSIDE, [
        ("if (left - min_stack_size >= stack.call_span) return -1;",
         "if (static_cast<std::ptrdiff_t>(left) < static_cast<std::ptrdiff_t>(min_stack_size)) return -1;"),
    ], {"cases": ["the room on a stack is known, and none where the stack pointer is on another one",
                  "a join on a stack that is not the fiber's calls nobody there"]}),
    ("a supply is asked for every class", POOL_INSIDE, [
        ("return supply_ != nullptr && supply_->serves(size_class);", "return supply_ != nullptr && size_class < 99;"),
    ], {"cases": ["a pool takes stacks of the classes that its supply serves from it"]}),
    ("a user's stacks are never given back", POOL, [("  supply_->deallocate(whole);\n", "  (void)whole;\n")],
     {"cases": ["fibers run on the stacks of the user's allocator",
                "a pool takes stacks of the classes that its supply serves from it"]}),
    ("a user's guard is not known", "runtime/src/runtime.cpp", [
        ("return at < active->low && at >= active->low - platform::page_size;",
         "return at == nullptr && at >= active->low - platform::page_size;"),
    ], {"cases": ["an overflow of a user's stack names the fiber"]}),
    ("a user's stack may be too small", SOURCE, [("if (size < least) {", "if (size + 8192 < least) {")],
     {"cases": ["stacks that are too small for the promise are refused at once"]}),
    ("an allocator for every stack", SOURCE, [("if (e->bytes == bytes) return e->from;", "if (e->bytes == 0) return e->from;")],
     {"cases": ["a source of any size has the stacks of all fibers, the root's too"]}),
    ("no look at the user's allocator", SUPPLIED, [
        ("if (stock_ != nullptr) stock_->deallocate(stock_->allocate(default_class));", ""),
    ], {"cases": ["what the allocator throws at first comes out of the runtime's constructor"]}),
    ("only std::bad_alloc of a user's allocator is caught", SUPPLIED, [("} catch (...) {", "} catch (const std::bad_alloc&) {")],
     {"cases": ["a fiber for which the user's allocator has no stack fails, the others go on"]}),
    ("calls of the user's allocator overlap", SUPPLIED, [
        ("  std::lock_guard one_at_a_time(mutex_);\n  return from_->allocate(", "  return from_->allocate("),
        ("  std::lock_guard one_at_a_time(mutex_);\n  from_->deallocate(", "  from_->deallocate("),
    ], {"cases": ["copies of a source share the allocator, one call at a time"]}),
    ("a stack allocator's stacks are as large as their class", RAW, [("return holds ? smallest : ", "return holds || true ? smallest : ")],
     {"cases": ["a stack allocator has guarded stacks of at least what was asked for"]}),
]
