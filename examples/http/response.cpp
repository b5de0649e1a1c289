// SPDX-License-Identifier: BSL-1.0
#include "response.hpp"

#include <charconv>

#include "target.hpp"

namespace http {

namespace {

// Appends to a buffer that has the room.
class pen {
 public:
  explicit pen(char* at) noexcept : at_(at) {}
  pen& operator<<(std::string_view text) noexcept {
    at_ += text.copy(at_, text.size());
    return *this;
  }
  pen& operator<<(std::uint64_t n) noexcept {
    at_ = std::to_chars(at_, at_ + 20, n).ptr;
    return *this;
  }
  void encoded(std::string_view path) noexcept { at_ = write_encoded(path, at_); }
  [[nodiscard]] char* at() const noexcept { return at_; }

 private:
  char* at_;
};

// All that write_head says by itself, and the longest of what it is given but the location.
constexpr std::size_t most = 1024;

void write_range(pen& p, const response_head& h) noexcept {
  if (h.status == status::partial_content) {
    p << "Content-Range: bytes " << h.range.first << "-" << h.range.last << "/" << h.total << "\r\n";
  } else if (h.status == status::range_not_satisfiable) {
    p << "Content-Range: bytes */" << h.total << "\r\n";
  }
}

}  // namespace

void write_head(buffer& to, const response_head& h, std::string_view date) {
  char* const start = reinterpret_cast<char*>(to.room(most + 3 * h.location.size()).data());
  pen p(start);
  p << "HTTP/1.1 " << static_cast<std::uint64_t>(h.status) << " " << reason(h.status) << "\r\nServer: ramie\r\nDate: ";
  p << date << "\r\n";
  if (!h.content_type.empty()) {
    p << "Content-Type: " << h.content_type << "\r\nContent-Length: " << h.content_length << "\r\n";
  }
  if (h.last_modified) p << "Last-Modified: " << *h.last_modified << "\r\nAccept-Ranges: bytes\r\n";
  write_range(p, h);
  if (h.status == status::method_not_allowed) p << "Allow: GET, HEAD\r\n";
  if (!h.location.empty()) {
    p << "Location: ";
    p.encoded(h.location);
    p << "/\r\n";
  }
  if (h.close) p << "Connection: close\r\n";
  if (h.say_keep_alive && !h.close) p << "Connection: keep-alive\r\n";
  p << "\r\n";
  to.commit(static_cast<std::size_t>(p.at() - start));
}

}  // namespace http
