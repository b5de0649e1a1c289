// SPDX-License-Identifier: BSL-1.0
#include "connection.hpp"

#include <algorithm>
#include <array>
#include <ctime>
#include <string_view>

#include "mime.hpp"

namespace http {

namespace {

constexpr std::size_t in_capacity = 4 * 1024;
constexpr std::size_t out_capacity = 8 * 1024;
constexpr std::size_t out_enough = 64 * 1024;  // gathered: written without waiting for more

enum class method : std::uint8_t { get, head, known, unknown };

method method_of(std::string_view name) noexcept {
  if (name == "GET") return method::get;
  if (name == "HEAD") return method::head;
  for (const std::string_view other : {"POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"}) {
    if (name == other) return method::known;
  }
  return method::unknown;
}

}  // namespace

connection::connection(ramie::tcp_stream& stream, site& files, const settings& how, ramie::shutdown_token stop)
    : stream_(stream),
      files_(files),
      how_(how),
      stop_(std::move(stop)),
      in_(in_capacity),
      out_(out_capacity),
      parser_(how.limits) {}

void connection::serve() {
  // Whoever waits for a request that has not begun need not wait any longer; a request that has come is answered.
  const auto on_stop = stop_.on_request([this] { stop_if_idle(); });
  for (bool more = true; more && !broken_;) {
    const next n = read_head();
    if (n == next::end) break;
    ++requests_;
    if (n == next::refused) {
      refuse(parser_.refusal());
      break;
    }
    respond(parser_.head());
    more = pass_over_body(parser_.head()) && !close_;
    parser_.reset();
  }
  if (flush() && (unread_ || !in_.empty())) linger();
}

// Two sides, each with a store before a load:
//   the connection         1. idle_ = true     2. has a stop been requested?  then it ends
//   whoever requests it    1. requested        2. idle_?                      then it is told
// So one of them sees the other. The bytes of a request that comes at the same moment are still read.
void connection::stop_if_idle() noexcept {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (!idle_.load(std::memory_order_relaxed)) return;
  try {
    stream_.shutdown(ramie::shutdown_part::read);
  } catch (const std::system_error&) {
    // The peer has gone: it will be noticed.
  }
}

connection::next connection::read_head() {
  ramie::deadline until;
  bool timed = false;
  for (;;) {
    const auto progress = parser_.advance(in_.view());
    if (progress == head_parser::progress::refused) return next::refused;
    if (progress == head_parser::progress::complete) {
      in_.consume(parser_.size());
      return next::request;
    }
    if (!flush()) return next::end;
    const bool begun = !in_.empty();
    if (!begun) {
      out_.shrink(out_capacity);
      in_.shrink(in_capacity);
      idle_.store(true, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);
      if (stop_.requested()) return next::end;
      until = ramie::deadline(how_.idle);
    } else if (!timed) {
      until = ramie::deadline(how_.head);
      timed = true;
    }
    const bool more = read_more(until);
    idle_.store(false, std::memory_order_relaxed);
    if (more) continue;
    // What is cut short by its end needs no answer; what is too slow gets one.
    if (!begun || !until.expired()) return next::end;
    refuse(status::request_timeout);
    return next::end;
  }
}

// False: the end, an error, too late.
bool connection::read_more(ramie::deadline until) {
  // One byte more than a head may have is enough for the parser to refuse it.
  const std::size_t most = how_.limits.head + 1;
  std::error_code ec;
  const std::size_t n = stream_.read_some(in_.room(in_.size() < most ? 1 : 0), ec, until);
  in_.commit(n);
  return n != 0;
}

void connection::respond(const request_head& request) {
  http_1_0_ = request.version() == version::http_1_0;
  // A client that waits for "100 Continue" has sent no body: it is told the end, and sends none on this connection.
  close_ = !request.keep_alive() || request.expects_continue() || stop_.requested();
  const method m = method_of(request.method());
  head_only_ = m == method::head;
  if (m == method::unknown) return respond_briefly(status::not_implemented);
  if (m == method::known) return respond_briefly(status::method_not_allowed);
  target_path path;
  const status parsed = path.parse(request.target());
  if (parsed != status::ok) return respond_briefly(parsed);
  const bool folder_wanted = path.is_folder();
  if (folder_wanted && !path.append("index.html")) return respond_briefly(status::not_found);
  served_file file;
  kind_of_file kind = kind_of_file::regular;
  const status opened = files_.open(path, file, kind);
  if (opened != status::ok) return respond_briefly(opened);
  if (kind == kind_of_file::regular) return respond_with_file(request, path, file);
  // Relative links in it would be wrong without the slash.
  if (!folder_wanted) return respond_briefly(status::moved_permanently, path.view());
  respond_briefly(status::not_found);
}

bool connection::is_fresh(const request_head& request, const served_file& file, std::string_view modified) const {
  if (request.find("if-none-match")) return false;  // takes precedence, and we have no tags
  const auto since = request.find("if-modified-since");
  if (!since) return false;
  if (*since == modified) return true;
  const auto when = parse_date(*since, std::time(nullptr));
  return when && file.modified() <= *when;
}

void connection::respond_with_file(const request_head& request, const target_path& path, served_file& file) {
  const std::string_view modified = modified_(file.modified());
  response_head head;
  head.last_modified = modified;
  head.close = close_;
  head.say_keep_alive = http_1_0_;
  if (is_fresh(request, file, modified)) {
    head.status = status::not_modified;
    return write_head(out_, head, now());
  }
  head.content_type = content_type(path.view());
  head.content_length = head.total = file.size();
  const auto range = head_only_ ? std::nullopt : request.find("range");
  if (range && request.find("if-range").value_or(modified) == modified) {
    head.range = parse_range(*range, file.size());
    if (head.range.what == byte_range::kind::part) {
      head.status = status::partial_content;
      head.content_length = head.range.last - head.range.first + 1;
    } else if (head.range.what == byte_range::kind::unsatisfiable) {
      head.status = status::range_not_satisfiable;
      head.content_length = 0;
    }
  }
  write_head(out_, head, now());
  if (head_only_) return;
  if (const auto content = file.content()) {
    send_from_memory(content->substr(head.range.first, head.content_length));
  } else {
    send_content(file, head.range.first, head.content_length);
  }
}

// What is small is gathered; else it leaves from where it is, with what was gathered before it.
void connection::send_from_memory(std::string_view content) {
  if (content.size() <= out_capacity / 2) {
    out_.append(content);
  } else {
    (void)flush(content);
  }
}

// A line that says what the head says, for people.
void connection::respond_briefly(status s, std::string_view location) {
  const std::string_view why = reason(s);
  response_head head;
  head.status = s;
  head.content_type = "text/plain; charset=utf-8";
  head.content_length = why.size() + 1;
  head.location = location;
  head.close = close_;
  head.say_keep_alive = http_1_0_;
  write_head(out_, head, now());
  if (head_only_) return;
  out_.append(why);
  out_.append("\n");
}

// A request that can't be understood: whose end, and so the next one's beginning, is not known.
void connection::refuse(status s) {
  close_ = unread_ = true;
  head_only_ = false;
  respond_briefly(s);
}

void connection::send_content(served_file& file, std::uint64_t first, std::uint64_t length) {
  while (length != 0 && !broken_) {
    if (out_.size() >= out_enough && !flush()) return;
    const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(length, out_enough - out_.size()));
    if (!file.read(out_.room(piece).first(piece), first)) {
      // More was promised than there is: only the end of the connection can tell.
      broken_ = true;
      return;
    }
    out_.commit(piece);
    first += piece;
    length -= piece;
  }
}

// False: the connection can't be used any more, for nobody knows where the next request begins.
bool connection::pass_over_body(const request_head& request) {
  if (request.framing() == framing::none) return true;
  unread_ = close_;
  if (close_) return false;
  body_decoder body(request, how_.limits);
  const auto until = ramie::deadline(how_.body);
  for (;;) {
    std::string_view rest = in_.view();
    auto progress = body.advance(rest);
    while (progress == body_decoder::progress::data) progress = body.advance(rest);
    in_.consume(in_.size() - rest.size());
    if (progress == body_decoder::progress::complete) return true;
    if (progress == body_decoder::progress::refused) break;
    if (!flush() || !read_more(until)) break;
  }
  unread_ = true;
  return false;
}

bool connection::flush(std::string_view more) {
  if (broken_) return false;
  if (out_.empty() && more.empty()) return true;
  const std::span<const std::byte> pieces[] = {std::as_bytes(std::span(out_.view())), std::as_bytes(std::span(more))};
  std::error_code ec;
  const auto until = ramie::deadline(how_.write);
  if (more.empty()) {
    stream_.write_all(pieces[0], ec, until);
  } else {
    stream_.write_all(ramie::const_buffers(pieces), ec, until);
  }
  out_.clear();
  broken_ = static_cast<bool>(ec);
  return !broken_;
}

// A socket that is closed with bytes unread resets the connection, and the response may be lost on the way. So: no more
// from us, then what still comes is read for a moment.
void connection::linger() {
  try {
    stream_.shutdown(ramie::shutdown_part::write);
  } catch (const std::system_error&) {
    return;
  }
  const auto until = ramie::deadline(std::chrono::seconds(1));
  std::array<std::byte, 4096> waste;
  std::error_code ec;
  for (int reads = 0; reads < 64 && stream_.read_some(waste, ec, until) != 0; ++reads) {
  }
}

std::string_view connection::now() noexcept {
  return date_(std::time(nullptr));
}

}  // namespace http
