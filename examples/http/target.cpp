// SPDX-License-Identifier: BSL-1.0
#include "target.hpp"

#include <algorithm>
#include <cstring>

#include "characters.hpp"

namespace http {

namespace {

// The path of either form, or an empty view. The authority of an absolute form counts as a Host: we are all of them.
std::string_view path_of(std::string_view target) noexcept {
  if (!target.starts_with('/')) {
    constexpr std::string_view scheme = "http://";
    if (!equals_ignoring_case(target.substr(0, scheme.size()), scheme)) return {};
    target.remove_prefix(scheme.size());
    const std::size_t end = target.find_first_of("/?");
    if (end == 0) return {};
    if (end == target.npos || target[end] == '?') return "/";
    target.remove_prefix(end);
  }
  return target.substr(0, target.find('?'));
}

}  // namespace

status target_path::parse(std::string_view target) noexcept {
  const std::string_view path = path_of(target);
  if (path.empty()) return status::bad_request;
  if (path.size() > capacity) return status::uri_too_long;
  const status decoded = decode(path);
  if (decoded != status::ok) return decoded;
  if (!normalise()) return status::bad_request;
  bytes_[size_] = '\0';
  return status::ok;
}

status target_path::decode(std::string_view path) noexcept {
  size_ = 0;
  for (std::size_t i = 0; i < path.size(); ++i) {
    char c = path[i];
    if (c == '%') {
      const int high = i + 2 < path.size() ? character::hex(path[i + 1]) : -1;
      const int low = high >= 0 ? character::hex(path[i + 2]) : -1;
      if (low < 0) return status::bad_request;
      c = static_cast<char>(high * 16 + low);
      if (c == '/') return status::bad_request;
      i += 2;
    }
    const auto u = static_cast<unsigned char>(c);
    if (u < 0x20 || u == 0x7f || c == '\\') return status::bad_request;
    bytes_[size_++] = c;
  }
  return status::ok;
}

// In place: what is kept never overtakes what is read. False: it would leave the root.
bool target_path::normalise() noexcept {
  const std::string_view all(bytes_.data(), size_);
  std::size_t kept = 0;
  std::string_view segment;
  for (std::size_t at = 0; at <= all.size(); at += segment.size() + 1) {
    segment = all.substr(at, all.find('/', at) - at);
    is_folder_ = segment.empty() || segment == "." || segment == "..";
    if (segment == "..") {
      if (kept == 0) return false;
      const std::size_t slash = std::string_view(bytes_.data(), kept).rfind('/');
      kept = slash == std::string_view::npos ? 0 : slash;
    } else if (!is_folder_) {
      if (kept != 0) bytes_[kept++] = '/';
      std::memmove(bytes_.data() + kept, segment.data(), segment.size());
      kept += segment.size();
    }
  }
  size_ = kept;
  return true;
}

bool target_path::append(std::string_view segment) noexcept {
  const std::size_t slash = size_ != 0 ? 1 : 0;
  if (size_ + slash + segment.size() > capacity) return false;
  if (slash != 0) bytes_[size_++] = '/';
  std::copy(segment.begin(), segment.end(), bytes_.begin() + static_cast<std::ptrdiff_t>(size_));
  size_ += segment.size();
  bytes_[size_] = '\0';
  return true;
}

char* write_encoded(std::string_view path, char* to) noexcept {
  constexpr std::string_view digits = "0123456789ABCDEF";
  *to++ = '/';
  for (const char c : path) {
    const auto u = static_cast<unsigned char>(c);
    const char low = character::lower(c);
    if ((low >= 'a' && low <= 'z') || character::digit(c) ||
        std::string_view("/-._~").find(c) != std::string_view::npos) {
      *to++ = c;
    } else {
      *to++ = '%';
      *to++ = digits[u >> 4];
      *to++ = digits[u & 15];
    }
  }
  return to;
}

}  // namespace http
