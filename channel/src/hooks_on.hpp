// SPDX-License-Identifier: BSL-1.0
// See hooks.hpp: a test may step in.
#pragma once

#include <atomic>

namespace ramie::detail {

using channel_hook = void (*)(channel_moment, channel_core&);
inline std::atomic<channel_hook> on_channel_moment{nullptr};

inline void reach(channel_moment when, channel_core& where) {
  if (const auto hook = on_channel_moment.load(std::memory_order_acquire)) hook(when, where);
}

}  // namespace ramie::detail
