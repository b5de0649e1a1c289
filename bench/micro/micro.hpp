// SPDX-License-Identifier: BSL-1.0
// The subjects of the micro-benchmarks: a file each, a title each in one table.
#pragma once

#include <nanobench.h>

namespace micro {

using ankerl::nanobench::Bench;
using ankerl::nanobench::doNotOptimizeAway;

void switches(Bench& bench);
void words(Bench& bench);
void queues(Bench& bench);
void pools(Bench& bench);
void locks(Bench& bench);
void nurseries(Bench& bench);
void channels(Bench& bench);
void blocking(Bench& bench);

}  // namespace micro
