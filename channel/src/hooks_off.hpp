// SPDX-License-Identifier: BSL-1.0
// See hooks.hpp: the moments cost nothing.
#pragma once

namespace ramie::channel_internal {

using namespace runtime_internal;

inline void reach(channel_moment, channel_core&) noexcept {}

}  // namespace ramie::channel_internal
