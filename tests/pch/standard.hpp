// SPDX-License-Identifier: BSL-1.0
// What the rooms use of the standard library, parsed once for each target. No header of ours: a change of one would
// compile everything again. (No guard: it is compiled by itself, once.)
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>
