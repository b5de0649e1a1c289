// SPDX-License-Identifier: BSL-1.0
// The channel room: how fibers meet. It stands on the runtime and never includes nursery headers:
// the lifetime of a channel does not depend on any nursery. tests/headers holds it to that.
#pragma once

namespace ramie::detail {

inline constexpr const char* channel_room = "channel";

}  // namespace ramie::detail
