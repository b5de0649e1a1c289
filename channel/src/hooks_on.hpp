// SPDX-License-Identifier: BSL-1.0
// See hooks.hpp: calls the test's function, if there is one.
#pragma once

#include <atomic>

namespace ramie::channel_internal {

using namespace runtime_internal;

using channel_hook = void (*)(channel_moment, channel_core&);
inline std::atomic<channel_hook> on_channel_moment{nullptr};

inline void reach(channel_moment when, channel_core& where) {
  if (const auto hook = on_channel_moment.load(std::memory_order_acquire)) hook(when, where);
}

}  // namespace ramie::channel_internal
