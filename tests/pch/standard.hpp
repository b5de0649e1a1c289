// SPDX-License-Identifier: BSL-1.0
// What the rooms use of the standard library, parsed once for each target that is built for tests alone. The library
// that is installed is built without, so that a forgotten include shows. (No guard: it is compiled by itself, once.)
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
