// SPDX-License-Identifier: BSL-1.0
// The parts, one by one, with nanobench: what a switch, a transition, a push and a pop cost.
//
//   micro [SUBJECT …]   switches, words, queues, pools, locks, nurseries, channels, blocking; without: all of them
//
// Where the processor lets nanobench count instructions, branches and cycles, it shows them, too.
#define ANKERL_NANOBENCH_IMPLEMENT
#include "micro.hpp"

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include <ramie/platform/fence.hpp>

namespace {

struct subject {
  std::string_view name;
  void (*measure)(micro::Bench&);
};
constexpr subject subjects[] = {
    {"switches", micro::switches}, {"words", micro::words}, {"queues", micro::queues},
    {"pools", micro::pools},       {"locks", micro::locks}, {"nurseries", micro::nurseries},
    {"channels", micro::channels}, {"blocking", micro::blocking},
};

void measure(const subject& s) {
  micro::Bench bench;
  bench.title(std::string(s.name)).minEpochTime(std::chrono::milliseconds(5));
  s.measure(bench);
}

}  // namespace

int main(int argc, char** argv) {
  ramie::platform::choose_fences();  // as a runtime does before anything else
  if (argc == 1) {
    for (const auto& s : subjects) measure(s);
  }
  for (int i = 1; i < argc; ++i) {
    bool known = false;
    for (const auto& s : subjects) {
      if (s.name != argv[i]) continue;
      known = true;
      measure(s);
    }
    if (!known) {
      std::fprintf(stderr, "micro: unknown subject '%s'\n", argv[i]);
      return 2;
    }
  }
  return 0;
}
