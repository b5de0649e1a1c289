// SPDX-License-Identifier: BSL-1.0
// Which ramie this is. Names live in an inline namespace per ABI, so that two versions can be linked
// into one program without mixing.
#pragma once

namespace ramie::inline v0 {

// The version of these headers; to be compared by numbers, or shown.
inline constexpr int version_major = 0;
inline constexpr int version_minor = 1;
inline constexpr int version_patch = 0;
inline constexpr const char* version_string = "0.1.0";

}  // namespace ramie::inline v0
