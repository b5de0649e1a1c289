// SPDX-License-Identifier: BSL-1.0
// Whatever the machine refuses, and whenever: a clear error or none, and nothing lost. See support/faults.hpp.
#include <support/fault_programs.hpp>

namespace conformance_faults {

using namespace test;
namespace p = test::programs;

const program all_programs[] = {
    {"nothing", p::nothing},
    {"tree", p::tree},
    {"many stacks", p::many_stacks},
    {"pipeline", p::pipeline},
    {"selecting", p::selecting},
    {"flavours", p::flavours},
    {"threads", p::threads},
    {"owning", p::owning},
    {"deeper", p::deeper},
    {"failing", p::failing, 2, on_purpose},
    {"unwinding", p::unwinding, 2, on_purpose},
    {"leaving", p::leaving, 2, on_purpose},
    {"failures", p::failures, 2, on_purpose},
    {"locals", p::locals},
    {"gathering", p::gathering},
    {"stopping", p::stopping},
};
const program elastic{"blocking", p::blocking, 1};
const program large_pools{"many frames", p::many_frames, 1};

long fail_each_in_all(const trouble& t) {
  long injected = 0;
  for (const program& each : all_programs) injected += fail_each(each, t);
  WARN(t.name << ": " << injected);
  return injected;
}

TEST_CASE("when memory is refused", "[conformance][faults][memory]") {
  CHECK(fail_each_in_all(no_memory) > 0);
}
TEST_CASE("when memory is refused to pools that have grown large", "[conformance][faults][memory]") {
  CHECK(fail_each(large_pools, no_memory) > 0);
  CHECK(fail_each(large_pools, refusal<fault::big_memory>("a huge page", out_of_memory)) > 0);
}
TEST_CASE("when memory for stacks is refused", "[conformance][faults][stacks]") {
  CHECK(fail_each_in_all(refusal<fault::stack_mapping>("a mapping of stacks", no_stack)) > 0);
}
TEST_CASE("when guards are refused", "[conformance][faults][stacks]") {
  CHECK(fail_each_in_all(refusal<fault::guard_by_madvise>("MADV_GUARD_INSTALL", 0)) > 0);
  CHECK(fail_each_in_all(no_mprotect) > 0);
}
TEST_CASE("when threads are refused", "[conformance][faults]") {
  const auto no_threads = refusal<fault::thread>("a thread", system_refused);
  CHECK(fail_each_in_all(no_threads) > 0);
  CHECK(fail_each(elastic, no_threads) > 0);
}
TEST_CASE("what can be done without is done without", "[conformance][faults]") {
  CHECK(fail_each_in_all(refusal<fault::signal_stack>("a signal stack", 0)) > 0);
  CHECK(fail_each_in_all(refusal<fault::sleep>("a futex wait", 0)) > 0);
}

}  // namespace conformance_faults
