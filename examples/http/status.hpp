// SPDX-License-Identifier: BSL-1.0
// The statuses this server answers with.
#pragma once

#include <cstdint>
#include <string_view>

namespace http {

enum class status : std::uint16_t {
  continue_ = 100,
  ok = 200,
  partial_content = 206,
  moved_permanently = 301,
  not_modified = 304,
  bad_request = 400,
  forbidden = 403,
  not_found = 404,
  method_not_allowed = 405,
  request_timeout = 408,
  length_required = 411,
  content_too_large = 413,
  uri_too_long = 414,
  range_not_satisfiable = 416,
  expectation_failed = 417,
  header_fields_too_large = 431,
  internal_error = 500,
  not_implemented = 501,
  service_unavailable = 503,
  version_not_supported = 505,
};

[[nodiscard]] constexpr std::string_view reason(status s) noexcept {
  switch (s) {
    case status::continue_: return "Continue";
    case status::ok: return "OK";
    case status::partial_content: return "Partial Content";
    case status::moved_permanently: return "Moved Permanently";
    case status::not_modified: return "Not Modified";
    case status::bad_request: return "Bad Request";
    case status::forbidden: return "Forbidden";
    case status::not_found: return "Not Found";
    case status::method_not_allowed: return "Method Not Allowed";
    case status::request_timeout: return "Request Timeout";
    case status::length_required: return "Length Required";
    case status::content_too_large: return "Content Too Large";
    case status::uri_too_long: return "URI Too Long";
    case status::range_not_satisfiable: return "Range Not Satisfiable";
    case status::expectation_failed: return "Expectation Failed";
    case status::header_fields_too_large: return "Request Header Fields Too Large";
    case status::internal_error: return "Internal Server Error";
    case status::not_implemented: return "Not Implemented";
    case status::service_unavailable: return "Service Unavailable";
    case status::version_not_supported: return "HTTP Version Not Supported";
  }
  return "Unknown";
}

}  // namespace http
