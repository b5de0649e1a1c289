// SPDX-License-Identifier: BSL-1.0
// What kind of content a file has, by its name.
#pragma once

#include <string_view>

namespace http {

// "text/html; charset=utf-8" for "a/b/index.html"; "application/octet-stream" for what is not known.
[[nodiscard]] std::string_view content_type(std::string_view path) noexcept;

}  // namespace http
