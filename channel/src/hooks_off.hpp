// SPDX-License-Identifier: BSL-1.0
// See hooks.hpp: nobody steps in.
#pragma once

namespace ramie::detail {

inline void reach(channel_moment, channel_core&) noexcept {}

}  // namespace ramie::detail
