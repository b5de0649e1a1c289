// SPDX-License-Identifier: BSL-1.0
// Heads of responses.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "buffer.hpp"
#include "date.hpp"
#include "range.hpp"
#include "status.hpp"

namespace http {

struct response_head {
  http::status status = http::status::ok;
  std::string_view content_type;  // empty: the response has no content, and none is announced
  std::uint64_t content_length = 0;
  std::optional<std::string_view> last_modified;
  byte_range range;  // partial_content: which; range_not_satisfiable: of `total`
  std::uint64_t total = 0;
  std::string_view location;    // a path of target_path: encoded here
  bool close = false;           // the connection ends with this
  bool say_keep_alive = false;  // to HTTP/1.0, which expects the opposite
};

// Appends it, with its empty line. Throws std::bad_alloc.
void write_head(buffer& to, const response_head& head, std::string_view date);

// Dates as text, written anew only when they change.
class date_cache {
 public:
  [[nodiscard]] std::string_view operator()(seconds t) noexcept {
    if (!known_ || t != of_) {
      text_ = write_date(t);
      of_ = t;
      known_ = true;
    }
    return {text_.data(), text_.size()};
  }

 private:
  bool known_ = false;
  seconds of_ = 0;
  date_text text_{};
};

}  // namespace http
