// SPDX-License-Identifier: BSL-1.0
// From stack to stack and back: Boost's fcontext, our jump, and the jump with all that belongs to a switch.
#include "micro.hpp"

#include <boost/context/detail/fcontext.hpp>

#include <ramie/platform/stack_pool.hpp>

namespace {

namespace fcontext = boost::context::detail;
namespace platform = ramie::platform;

alignas(64) char memory[64 * 1024];
constexpr auto nothing = [](platform::thread_anchor*) {};

// Where the partner of a switch_stack is, and where it goes back to.
platform::stack_block here;
platform::stack_block* there = nullptr;

void jump_back(platform::arrival landed) {
  for (;;) landed = platform::jump(landed.from, nullptr);
}

void switch_back(platform::arrival landed) {
  auto* anchor = platform::first_arrival(landed, *there, nothing);
  for (;;) anchor = platform::switch_stack(anchor, *there, here, nothing);
}

void by_fcontext(micro::Bench& bench) {
  fcontext::transfer_t partner{fcontext::make_fcontext(memory + sizeof memory, sizeof memory,
                                                       [](fcontext::transfer_t t) {
                                                         for (;;) t = fcontext::jump_fcontext(t.fctx, nullptr);
                                                       }),
                               nullptr};
  bench.run("fcontext", [&] { partner = fcontext::jump_fcontext(partner.fctx, nullptr); });
}

void by_jump(micro::Bench& bench) {
  platform::arrival partner{platform::make_context(memory + sizeof memory, sizeof memory, jump_back, {}), nullptr};
  bench.run("our jump", [&] { partner = platform::jump(partner.from, nullptr); });
}

void by_switch_stack(micro::Bench& bench) {
  platform::stack_pool pool(switch_back);
  there = pool.take(0);
  if (there == nullptr) return;
  platform::thread_anchor anchor;
  platform::anchor_this_thread(anchor);
  bench.run("switch_stack", [&] { micro::doNotOptimizeAway(platform::switch_stack(&anchor, here, *there, nothing)); });
  pool.give_back(there);
}

}  // namespace

void micro::switches(Bench& bench) {
  bench.unit("switch").batch(2);  // there and back
  by_fcontext(bench);
  by_jump(bench);
  by_switch_stack(bench);
}
