// SPDX-License-Identifier: BSL-1.0
// One connection: requests in, responses out, in order, until one of the two sides has had enough.
//
// Responses are gathered while whole requests are at hand and written when the next one has to be waited for: a small
// file leaves in one write with its head, and a pipeline of requests is answered in as many writes as it came in reads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <system_error>

#include <ramie/shutdown.hpp>
#include <ramie/tcp.hpp>
#include <ramie/time.hpp>

#include "body.hpp"
#include "buffer.hpp"
#include "parser.hpp"
#include "response.hpp"
#include "site.hpp"
#include "target.hpp"

namespace http {

struct settings {
  http::limits limits;
  std::chrono::milliseconds idle = std::chrono::seconds(30);   // from a response to the next request
  std::chrono::milliseconds head = std::chrono::seconds(10);   // from the first byte of a head to its last
  std::chrono::milliseconds body = std::chrono::seconds(30);   // for all of a body
  std::chrono::milliseconds write = std::chrono::seconds(30);  // for 64 KiB of a response
};

class connection {
 public:
  // What it refers to outlives it.
  connection(ramie::tcp_stream& stream, site& files, const settings& how, ramie::shutdown_token stop);

  // Serves it to its end. A cancellation point. Throws std::bad_alloc; all else that goes wrong ends the connection.
  void serve();
  [[nodiscard]] std::uint64_t requests() const noexcept { return requests_; }

 private:
  enum class next : std::uint8_t { request, refused, end };

  [[nodiscard]] next read_head();
  [[nodiscard]] bool read_more(ramie::deadline until);
  void stop_if_idle() noexcept;

  void respond(const request_head& request);
  void respond_with_file(const request_head& request, const target_path& path, served_file& file);
  void respond_briefly(status s, std::string_view location = {});
  void refuse(status s);
  [[nodiscard]] bool is_fresh(const request_head& request, const served_file& file, std::string_view modified) const;
  void send_from_memory(std::string_view content);
  void send_content(served_file& file, std::uint64_t first, std::uint64_t length);
  [[nodiscard]] bool pass_over_body(const request_head& request);
  // Writes what was gathered, and this behind it.
  [[nodiscard]] bool flush(std::string_view more = {});
  void linger();
  [[nodiscard]] std::string_view now() noexcept;

  ramie::tcp_stream& stream_;
  site& files_;
  const settings& how_;
  ramie::shutdown_token stop_;
  std::atomic<bool> idle_ = false;
  buffer in_, out_;
  head_parser parser_;
  bool close_ = false;   // after this response
  bool broken_ = false;  // nothing more can be written
  bool unread_ = false;  // the peer may be sending what nobody reads
  bool http_1_0_ = false;
  bool head_only_ = false;
  std::uint64_t requests_ = 0;
  date_cache date_, modified_;
};

}  // namespace http
