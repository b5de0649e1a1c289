// SPDX-License-Identifier: BSL-1.0
// A short program that a nursery with a flaw does not survive: it hangs, crashes or ends with 1.
#include <cstdlib>
#include <exception>
#include <stdexcept>

#include <ramie/ramie.hpp>
#include <ramie/runtime/gate.hpp>

namespace {

using ramie::nursery;
using ramie::detail::gate;

void wait_at(gate& g) {
  static const ramie::detail::wait_reason why{"probe"};
  g.wait(why);
}

// The child waits for what the joiner does after the timeout.
void join_inside_timeout() {
  gate after;
  nursery n;
  n.spawn([&] { wait_at(after); });
  if (ramie::with_timeout(std::chrono::milliseconds(1), [&] { n.join(); })) std::exit(1);
  after.open();
  n.join();
}

// The stranger waits for what the joiner does after its join.
void stranger_at_the_young_end() {
  gate after;
  nursery outer;
  nursery inner;
  inner.spawn([] { ramie::yield(); });
  outer.spawn([&] { wait_at(after); });
  inner.join();
  after.open();
  outer.join();
}

[[gnu::noinline]] void use_what_was_promised() {
  volatile char large[40'000];
  for (std::size_t i = 0; i < sizeof large; i += 1'000) large[i] = 1;
}

void nest(int depth) {
  use_what_was_promised();
  if (depth == 0) return;
  nursery n;
  n.spawn([depth] { nest(depth - 1); });
  n.join();
}

void unwinding_joiner() {
  bool wrong = false;
  try {
    nursery n;
    n.spawn([&] { wrong = std::uncaught_exceptions() != 0; });
    ramie::shield so_that_it_starts;
    throw std::runtime_error("");
  } catch (const std::runtime_error&) {
  }
  try {
    throw 1;
  } catch (int) {
    nursery n;
    n.spawn([&] { wrong = wrong || std::current_exception() != nullptr; });
    n.join();
  }
  if (wrong) std::exit(1);
}

void one_is_enough() {
  bool unwound = false;
  try {
    gate never;
    nursery n;
    n.spawn([&] {
      try {
        wait_at(never);
      } catch (const ramie::cancelled&) {
        unwound = true;
        throw;
      }
    });
    ramie::yield();
    n.spawn([] { throw std::runtime_error(""); });
    n.join();
  } catch (const std::runtime_error&) {
    if (unwound) return;
  }
  std::exit(1);
}

}  // namespace

int main() {
  ramie::options o;
  o.workers = 1;
  o.elastic = false;
  ramie::run(o, [] {
    nursery n;
    auto probe = n.spawn([] {
      join_inside_timeout();
      stranger_at_the_young_end();
      nest(2'000);
      unwinding_joiner();
      one_is_enough();
    });
    probe.get();  // on a stack of its own, smaller than this one
    n.join();
  });
}
