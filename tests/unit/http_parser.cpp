// SPDX-License-Identifier: BSL-1.0
// The leaves of the HTTP example: heads and bodies of requests.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <fuzz/http_oracle.hpp>
#include <http/body.hpp>
#include <http/parser.hpp>
#include <support/test.hpp>

namespace {

using namespace std::string_literals;
using progress = http::head_parser::progress;

// The status a head is refused with; 200 if it is complete, 100 if it needs more.
int outcome_of(std::string_view head, const http::limits& l = {}) {
  http::head_parser p(l);
  switch (p.advance(head)) {
    case progress::complete: return 200;
    case progress::needs_more: return 100;
    case progress::refused: break;
  }
  return static_cast<int>(p.refusal());
}

// "GET / HTTP/1.1", a Host and these fields.
std::string with_fields(const std::string& fields) {
  return "GET / HTTP/1.1\r\nHost: a\r\n" + fields + "\r\n";
}

int fields_outcome(const std::string& fields, const http::limits& l = {}) {
  return outcome_of(with_fields(fields), l);
}

int line_outcome(const std::string& line) {
  return outcome_of(line + "\r\nHost: a\r\n\r\n");
}

struct read_body {
  int status = 100;  // 200: complete
  std::string data;
  std::string rest;
};

read_body body_of(const std::string& fields, std::string_view bytes, const http::limits& l = {}) {
  const std::string text = with_fields(fields);
  http::head_parser p(l);
  if (p.advance(text) != progress::complete) return {-1, {}, {}};
  http::body_decoder body(p.head(), l);
  read_body result;
  http::body_decoder::progress now;
  while ((now = body.advance(bytes)) == http::body_decoder::progress::data) result.data += body.data();
  if (now == http::body_decoder::progress::complete) result.status = 200;
  if (now == http::body_decoder::progress::refused) result.status = static_cast<int>(body.refusal());
  result.rest = bytes;
  return result;
}

read_body chunked(std::string_view bytes, const http::limits& l = {}) {
  return body_of("Transfer-Encoding: chunked\r\n", bytes, l);
}

}  // namespace

TEST_CASE("A request's head comes out as it was written", "[unit][http]") {
  const std::string text = "HEAD /a?b HTTP/1.1\r\nHost: h:80\r\nX-Thing: \t two words \r\nEmpty:\r\n\r\nrest";
  http::head_parser p;
  REQUIRE(p.advance(text) == progress::complete);
  CHECK(p.size() == text.size() - 4);
  const http::request_head& h = p.head();
  CHECK(h.method() == "HEAD");
  CHECK(h.target() == "/a?b");
  CHECK(h.version() == http::version::http_1_1);
  REQUIRE(h.fields() == 3);
  CHECK(h[1].name == "X-Thing");
  CHECK(h[1].value == "two words");
  CHECK(h.find("empty") == "");
  CHECK(h.find("x-thing") == "two words");
  CHECK_FALSE(h.find("x"));
  CHECK(h.framing() == http::framing::none);
}

TEST_CASE("A head is complete with its last byte, and may move while it comes", "[unit][http]") {
  const std::string text = with_fields("A: b\r\nContent-Length: 7\r\n");
  http::head_parser p;
  for (std::size_t n = 0; n < text.size(); ++n) {
    const std::string elsewhere = text.substr(0, n);
    REQUIRE(p.advance(elsewhere) == progress::needs_more);
    REQUIRE(p.begun() == (n != 0));
  }
  REQUIRE(p.advance(text) == progress::complete);
  CHECK(p.head().find("a") == "b");
  CHECK(p.head().content_length() == 7);
}

TEST_CASE("A parser that was reset remembers nothing", "[unit][http]") {
  http::head_parser p;
  REQUIRE(p.advance(with_fields("Content-Length: 7\r\nConnection: close\r\nExpect: 100-continue\r\n")) ==
          progress::complete);
  p.reset();
  const std::string text = "GET / HTTP/1.0\r\n\r\n";
  REQUIRE(p.advance(text) == progress::complete);
  CHECK(p.head().fields() == 0);
  CHECK(p.head().content_length() == 0);
  CHECK(p.head().framing() == http::framing::none);
  CHECK_FALSE(p.head().expects_continue());
  p.reset();
  CHECK(p.advance("GET / HTTP/1.1\r\n\r\n") == progress::refused);  // the Host of the one before does not count
  p.reset();
  REQUIRE(p.advance(with_fields("")) == progress::complete);
  CHECK(p.head().keep_alive());
}

TEST_CASE("Request lines that are none are refused", "[unit][http]") {
  for (const char* const bad :
       {"GET /", "GET / ", "GET  / HTTP/1.1", "GET / HTTP/1.1 ", " GET / HTTP/1.1", "GET\t/ HTTP/1.1", "GET / http/1.1",
        "GET / HTTP/1.", "GET / HTTP/11", "GET / HTTP/1.10", "G(T / HTTP/1.1", "GET /a b HTTP/1.1",
        "GET /\x7f HTTP/1.1", "GET /\xc3\xbc HTTP/1.1", "GET /a#b HTTP/1.1", "GET / HTTP/1.1\rX", "GET"}) {
    CAPTURE(bad);
    CHECK(line_outcome(bad) == 400);
  }
  CHECK(line_outcome("GET /\0 HTTP/1.1"s) == 400);
  CHECK(line_outcome("GET / HTTP/2.0") == 505);
  CHECK(line_outcome("GET / HTTP/0.9") == 505);
  CHECK(line_outcome("GET / HTTP/1.2") == 200);
  CHECK(line_outcome("BREW /pot HTTP/1.1") == 200);  // whether it is done is not the parser's business
  CHECK(outcome_of("\r\nGET / HTTP/1.0\r\n\r\n") == 200);
  CHECK(outcome_of("\r\n\r\nGET / HTTP/1.0\r\n\r\n") == 400);
  CHECK(outcome_of("GET / HTTP/1.0\n\n") == 400);
}

TEST_CASE("What two parsers could read differently is refused", "[unit][http]") {
  for (const char* const bad : {"X : a\r\n",
                                "X\t: a\r\n",
                                "X\r\n",
                                ": a\r\n",
                                "X: a\r\n b\r\n",
                                " X: a\r\n",
                                "X: a\rb\r\n",
                                "X: a\n",
                                "X: a\x01\r\n",
                                "X(: a\r\n",
                                "\rX: a\r\n",
                                "Host: b\r\n",
                                "Content-Length: 5\r\nContent-Length: 5\r\n",
                                "Content-Length: 5\r\ncontent-length: 6\r\n",
                                "Content-Length: 5, 5\r\n",
                                "Content-Length: +5\r\n",
                                "Content-Length: -5\r\n",
                                "Content-Length: 0x5\r\n",
                                "Content-Length: 5 5\r\n",
                                "Content-Length:\r\n",
                                "Content-Length: 18446744073709551616\r\n",
                                "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
                                "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
                                "Transfer-Encoding:\r\n",
                                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                                "Transfer-Encoding: \x0b"
                                "chunked\r\n"}) {
    CAPTURE(bad);
    CHECK(fields_outcome(bad) == 400);
  }
  CHECK(fields_outcome("X: a\0b\r\n"s) == 400);
  CHECK(fields_outcome("Transfer-Encoding: gzip, chunked\r\n") == 501);
  CHECK(fields_outcome("Transfer-Encoding: identity\r\n") == 501);
  CHECK(fields_outcome("Transfer-Encoding: xchunked\r\n") == 501);
  CHECK(fields_outcome("Transfer-Encoding: chunked, chunked\r\n") == 501);
  CHECK(outcome_of("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n") == 400);
}

TEST_CASE("HTTP/1.1 needs exactly one Host that can be one", "[unit][http]") {
  CHECK(outcome_of("GET / HTTP/1.1\r\n\r\n") == 400);
  CHECK(outcome_of("GET / HTTP/1.0\r\n\r\n") == 200);
  CHECK(outcome_of("GET / HTTP/1.1\r\nHost:\r\n\r\n") == 200);
  CHECK(outcome_of("GET / HTTP/1.1\r\nHOST: [::1]:8080\r\n\r\n") == 200);
  CHECK(outcome_of("GET / HTTP/1.1\r\nHost: a b\r\n\r\n") == 400);
  CHECK(outcome_of("GET / HTTP/1.1\r\nHost: a/b\r\n\r\n") == 400);
}

TEST_CASE("Connections stay open by HTTP's rules", "[unit][http]") {
  const auto kept = [](const std::string& text) {
    http::head_parser p;
    return p.advance(text) == progress::complete && p.head().keep_alive();
  };
  CHECK(kept(with_fields("")));
  CHECK(kept(with_fields("Connection: upgrade\r\n")));
  CHECK_FALSE(kept(with_fields("Connection: close\r\n")));
  CHECK_FALSE(kept(with_fields("Connection: foo ,\tClose,\r\n")));
  CHECK_FALSE(kept(with_fields("Connection: keep-alive\r\nConnection: close\r\n")));
  CHECK_FALSE(kept("GET / HTTP/1.0\r\n\r\n"));
  CHECK(kept("GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n"));
  CHECK_FALSE(kept("GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n"));
}

TEST_CASE("Expectations are met, not heard, or refused", "[unit][http]") {
  const auto expects = [](const std::string& text) {
    http::head_parser p;
    return p.advance(text) == progress::complete && p.head().expects_continue();
  };
  CHECK(expects(with_fields("Expect: 100-Continue\r\nContent-Length: 1\r\n")));
  CHECK_FALSE(expects(with_fields("Expect: 100-continue\r\n")));  // no body to wait for
  CHECK_FALSE(expects("PUT / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n"));
  CHECK(fields_outcome("Expect: a-miracle\r\n") == 417);
}

TEST_CASE("Heads have limits, to the byte", "[unit][http]") {
  const http::limits l{.head = 100, .line = 60, .target = 20, .fields = 3, .body = 10, .chunked = false};
  const auto target_of = [&](std::size_t n) { return "GET /" + std::string(n - 1, 'x') + " HTTP/1.0\r\n\r\n"; };
  CHECK(outcome_of(target_of(20), l) == 200);
  CHECK(outcome_of(target_of(21), l) == 414);
  CHECK(outcome_of(std::string(60, 'G'), l) == 100);
  CHECK(outcome_of(std::string(61, 'G'), l) == 414);
  const std::string start = "GET / HTTP/1.0\r\n";
  CHECK(outcome_of(start + "X: " + std::string(55, 'y') + "\r\n\r\n", l) == 200);  // a line of 60
  CHECK(outcome_of(start + "X: " + std::string(56, 'y') + "\r\n\r\n", l) == 431);
  CHECK(outcome_of(start + "X: " + std::string(58, 'y'), l) == 431);
  CHECK(outcome_of(start + "A: b\r\nC: d\r\nE: f\r\n\r\n", l) == 200);
  CHECK(outcome_of(start + "A: b\r\nC: d\r\nE: f\r\nG: h\r\n\r\n", l) == 431);
  const auto sized = [&](std::size_t n) {  // a head of n bytes
    return start + "A: " + std::string(45, 'b') + "\r\nC: " + std::string(n - start.size() - 57, 'd') + "\r\n\r\n";
  };
  REQUIRE(sized(100).size() == 100);
  CHECK(outcome_of(sized(100), l) == 200);
  CHECK(outcome_of(sized(101), l) == 431);
  CHECK(outcome_of(sized(101).substr(0, 100), l) == 100);
  CHECK(fields_outcome("Content-Length: 10\r\n", l) == 200);
  CHECK(fields_outcome("Content-Length: 11\r\n", l) == 413);
  CHECK(fields_outcome("Transfer-Encoding: chunked\r\n", l) == 411);
}

TEST_CASE("A refusal is final", "[unit][http]") {
  http::head_parser p;
  REQUIRE(p.advance("GET / HTTP/9.0\r\n") == progress::refused);
  CHECK(p.advance("GET / HTTP/1.0\r\n\r\n") == progress::refused);
  CHECK(p.refusal() == http::status::version_not_supported);
}

TEST_CASE("A body of a known length ends there", "[unit][http]") {
  const read_body b = body_of("Content-Length: 5\r\n", "hello, next");
  CHECK(b.status == 200);
  CHECK(b.data == "hello");
  CHECK(b.rest == ", next");
  CHECK(body_of("Content-Length: 5\r\n", "hell").status == 100);
  CHECK(body_of("Content-Length: 0\r\n", "x").rest == "x");
  CHECK(body_of("", "x").status == 200);
}

TEST_CASE("A chunked body is put together, and its trailer passed over", "[unit][http]") {
  const read_body b = chunked("5\r\nhello\r\n00a;x=\"y\"\r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\nnext");
  CHECK(b.status == 200);
  CHECK(b.data == "hello0123456789");
  CHECK(b.rest == "next");
  std::string many;
  for (int i = 0; i < 50; ++i) many += "001\r\nx\r\n";
  CHECK(chunked(many + "0\r\n\r\n").data == std::string(50, 'x'));
  CHECK(chunked("0\r\n\r\n").status == 200);
  CHECK(chunked("0\r\n\r").status == 100);
}

TEST_CASE("Chunks that could be read differently are refused", "[unit][http]") {
  for (const char* const bad : {"\r\n",
                                "x\r\n",
                                "0x5\r\nhello",
                                "-1\r\n",
                                "+1\r\n",
                                " 5\r\n",
                                "5 \r\nhello",
                                "5\nhello",
                                "5\r\r\nhello",
                                "5;\nhello",
                                "5;a\rb\r\n",
                                "5;\x01\r\n",
                                "5\r\nhello0\r\n",
                                "5\r\nhello\n0\r\n",
                                "5\r\nhello\rX0\r\n",
                                "0\r\nX : y\r\n",
                                "0\r\n X: y\r\n",
                                "0\r\nX: y\r\n z\r\n",
                                "0\r\nX\r\n",
                                "0\r\nX: y\n",
                                "0\r\n\n",
                                "0\r\n:\r\n",
                                "1000000000000000\r\n",
                                "0000000000000001\r\n"}) {
    CAPTURE(bad);
    CHECK(chunked(bad).status == 400);
  }
}

TEST_CASE("Chunked bodies have limits: of data, extensions, trailers, and what is no data", "[unit][http]") {
  http::limits l;
  l.body = 10;
  CHECK(chunked("a\r\n0123456789\r\n0\r\n\r\n", l).status == 200);
  CHECK(chunked("b\r\n", l).status == 413);
  CHECK(chunked("5\r\nhello\r\n6\r\n", l).status == 413);
  CHECK(chunked("5;" + std::string(256, 'x') + "\r\n").status == 100);
  CHECK(chunked("5;" + std::string(257, 'x') + "\r\n").status == 400);
  l.head = 64;
  CHECK(chunked("0\r\nX: " + std::string(65, 'y'), l).status == 431);
  std::string crumbs;
  for (int i = 0; i < 10'000; ++i) crumbs += "1;" + std::string(200, 'x') + "\r\na\r\n";
  CHECK(chunked(crumbs).status == 400);
}

TEST_CASE("The corpus of the fuzzer holds, in one piece and in many", "[unit][http]") {
  std::size_t inputs = 0;
  std::vector<std::string> wrong;
  for (const auto& file : std::filesystem::directory_iterator(RAMIE_FUZZ_CORPUS "/http")) {
    std::ifstream in(file.path(), std::ios::binary);
    const std::string input((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    // Every beginning of it is an input, too.
    for (std::size_t n = 0; n <= input.size(); n += 1 + input.size() / test::scaled(100, 4)) {
      const std::string what = test::http_oracle::wrong(std::string_view(input).substr(0, n));
      if (!what.empty()) wrong.push_back(file.path().filename().string() + ": " + what);
      ++inputs;
    }
    const std::string what = test::http_oracle::wrong(input);
    if (!what.empty()) wrong.push_back(file.path().filename().string() + ": " + what);
  }
  CHECK(inputs > 90);
  CHECK(wrong == std::vector<std::string>{});
}
