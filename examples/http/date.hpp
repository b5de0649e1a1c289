// SPDX-License-Identifier: BSL-1.0
// Times as HTTP writes them. No locale and no time zone has a say.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace http {

// Seconds since 1970, UTC.
using seconds = std::int64_t;

// "Sun, 06 Nov 1994 08:49:37 GMT". Years 0 to 9999.
using date_text = std::array<char, 29>;
[[nodiscard]] date_text write_date(seconds t) noexcept;

// That, or one of the two older ways: "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994". `now` tells which
// century two digits mean.
[[nodiscard]] std::optional<seconds> parse_date(std::string_view text, seconds now) noexcept;

}  // namespace http
