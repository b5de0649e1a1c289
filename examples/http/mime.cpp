// SPDX-License-Identifier: BSL-1.0
#include "mime.hpp"

#include <utility>

#include "characters.hpp"

namespace http {

namespace {

constexpr std::pair<std::string_view, std::string_view> types[] = {
    {"html", "text/html; charset=utf-8"},
    {"htm", "text/html; charset=utf-8"},
    {"css", "text/css; charset=utf-8"},
    {"js", "text/javascript; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"txt", "text/plain; charset=utf-8"},
    {"md", "text/markdown; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"xml", "application/xml"},
    {"svg", "image/svg+xml"},
    {"png", "image/png"},
    {"jpg", "image/jpeg"},
    {"jpeg", "image/jpeg"},
    {"gif", "image/gif"},
    {"webp", "image/webp"},
    {"ico", "image/x-icon"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
    {"pdf", "application/pdf"},
    {"wasm", "application/wasm"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"webm", "video/webm"},
    {"gz", "application/gzip"},
    {"zip", "application/zip"},
};

}  // namespace

std::string_view content_type(std::string_view path) noexcept {
  const std::string_view name = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t dot = name.rfind('.');
  if (dot != name.npos) {
    for (const auto& [extension, type] : types) {
      if (equals_ignoring_case(name.substr(dot + 1), extension)) return type;
    }
  }
  return "application/octet-stream";
}

}  // namespace http
