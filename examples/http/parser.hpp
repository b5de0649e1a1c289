// SPDX-License-Identifier: BSL-1.0
// The head of an HTTP/1.1 request, parsed as it comes. A leaf: bytes in, a head or a refusal out; it allocates nothing.
//
// Invariants
//   HP1  The outcome depends on the bytes alone, not on the pieces they come in.
//   HP2  Nothing beyond the bytes given is read, and nothing beyond the end of the head is looked at.
//   HP3  What two parsers could read differently is refused: folded lines, lines that do not end in CR LF, a CR or NUL
//        anywhere else, space before a colon, more than one Content-Length or Transfer-Encoding or both, other codings.
//   HP4  A refusal is final. Where the request ends is then unknown: answer, and close the connection.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "status.hpp"

namespace http {

struct limits {
  std::size_t head = 16 * 1024;  // bytes of the head, from the request line to the empty line; at most 64 KiB
  std::size_t line = 8 * 1024;   // of one line of it
  std::size_t target = 4 * 1024;
  std::size_t fields = 100;  // at most max_fields
  std::uint64_t body = 1024 * 1024;
  bool chunked = true;  // false: a body has to say its length (411)

  static constexpr std::size_t max_head = 64 * 1024;
  static constexpr std::size_t max_fields = 128;
};

enum class version : std::uint8_t { http_1_0, http_1_1 };

// How the end of the body is found.
enum class framing : std::uint8_t { none, length, chunked };

struct field {
  std::string_view name;   // as it was written
  std::string_view value;  // without the white space around it
};

// A request without its body. Its views are into the bytes it was parsed from.
class request_head {
 public:
  [[nodiscard]] std::string_view method() const noexcept { return view(method_); }
  [[nodiscard]] std::string_view target() const noexcept { return view(target_); }
  [[nodiscard]] http::version version() const noexcept { return version_; }

  [[nodiscard]] std::size_t fields() const noexcept { return count_; }
  [[nodiscard]] field operator[](std::size_t i) const noexcept { return {view(names_[i]), view(values_[i])}; }
  // The value of the first field of that name (in lower case), whatever the case it was written in.
  [[nodiscard]] std::optional<std::string_view> find(std::string_view lower_case_name) const noexcept;

  [[nodiscard]] http::framing framing() const noexcept { return framing_; }
  [[nodiscard]] std::uint64_t content_length() const noexcept { return content_length_; }
  // Whether the client is ready for another response on this connection.
  [[nodiscard]] bool keep_alive() const noexcept;
  // Whether it waits for "100 Continue" before it sends the body.
  [[nodiscard]] bool expects_continue() const noexcept {
    return expects_continue_ && version_ == http::version::http_1_1 && framing_ != http::framing::none;
  }

 private:
  friend class head_parser;
  struct piece {
    std::uint32_t at, size;
  };
  [[nodiscard]] std::string_view view(piece p) const noexcept { return {bytes_ + p.at, p.size}; }

  const char* bytes_ = nullptr;
  piece method_{}, target_{};
  http::version version_ = http::version::http_1_1;
  http::framing framing_ = http::framing::none;
  bool close_ = false, keep_alive_ = false;
  bool has_host_ = false, has_length_ = false, has_coding_ = false, expects_continue_ = false;
  std::uint64_t content_length_ = 0;
  std::size_t count_ = 0;
  std::array<piece, limits::max_fields> names_, values_;  // [0, count_)
};

class head_parser {
 public:
  enum class progress : std::uint8_t { needs_more, complete, refused };

  explicit head_parser(const limits& l = {}) noexcept;

  // `bytes` are all that have come since the beginning of the request, those of earlier calls included; they may have
  // moved. After `complete` and `refused` it says the same again.
  progress advance(std::string_view bytes) noexcept;
  // For the next request.
  void reset() noexcept;

  // When complete; valid while the bytes of the last advance() are.
  [[nodiscard]] const request_head& head() const noexcept { return head_; }
  // When complete: how many bytes it took. What follows is its body, or the next request.
  [[nodiscard]] std::size_t size() const noexcept { return line_; }
  // When refused: what to answer.
  [[nodiscard]] status refusal() const noexcept { return refusal_; }
  // Whether anything of a request has come: time is up for it, not for the idle connection.
  [[nodiscard]] bool begun() const noexcept { return scanned_ != 0; }

 private:
  enum class part : std::uint8_t { request_line, fields, complete, refused };

  [[nodiscard]] progress outcome() const noexcept;
  void refuse(status s) noexcept;
  void refuse_length() noexcept;
  void take_line(std::size_t at, std::string_view line) noexcept;
  void take_request_line(std::size_t at, std::string_view line) noexcept;
  void take_version(std::string_view text) noexcept;
  void take_field(std::size_t at, std::string_view line) noexcept;
  void take_meaning(std::string_view name, std::string_view value) noexcept;
  void take_content_length(std::string_view value) noexcept;
  void take_transfer_encoding(std::string_view value) noexcept;
  void take_connection(std::string_view value) noexcept;
  void take_end() noexcept;

  limits limits_;
  part part_ = part::request_line;
  status refusal_ = status::ok;
  std::size_t line_ = 0;     // where the line under way begins
  std::size_t scanned_ = 0;  // up to here there is no end of it
  request_head head_;
};

}  // namespace http
