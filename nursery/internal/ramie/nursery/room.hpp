// SPDX-License-Identifier: BSL-1.0
// The nursery room: how fibers live and die. It stands on the runtime and never includes channel headers:
// the lifetime of a channel does not depend on any nursery. tests/headers holds it to that.
#pragma once

namespace ramie::detail {

inline constexpr const char* nursery_room = "nursery";

}  // namespace ramie::detail
