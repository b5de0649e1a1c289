// SPDX-License-Identifier: BSL-1.0
// The leaves of the HTTP example: paths, the root, ranges, dates, types.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include <http/date.hpp>
#include <http/mime.hpp>
#include <http/range.hpp>
#include <http/root.hpp>
#include <http/target.hpp>
#include <support/test.hpp>

namespace {

// The path of a target, with '/' behind it if it is a folder's; or its status.
std::string path_of(std::string_view target) {
  http::target_path p;
  const http::status s = p.parse(target);
  if (s != http::status::ok) return std::to_string(static_cast<int>(s));
  return std::string(p.view()) + (p.is_folder() ? "/" : "");
}

std::string range_of(std::string_view value, std::uint64_t size) {
  const http::byte_range r = http::parse_range(value, size);
  if (r.what == http::byte_range::kind::whole) return "whole";
  if (r.what == http::byte_range::kind::unsatisfiable) return "beyond";
  return std::to_string(r.first) + "-" + std::to_string(r.last);
}

std::string date_of(http::seconds t) {
  const http::date_text text = http::write_date(t);
  return {text.data(), text.size()};
}

// A folder with a file, a folder and links in it, a file beside it, and nothing of it afterwards.
class folders {
 public:
  folders() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ramie-http-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) throw std::system_error(errno, std::system_category(), "mkdtemp");
    path_ = pattern;
    std::filesystem::create_directories(path_ / "root/sub");
    std::ofstream(path_ / "secret") << "secret";
    std::ofstream(path_ / "root/file") << "file";
    std::ofstream(path_ / "root/sub/file") << "sub";
    std::filesystem::create_symlink("../secret", path_ / "root/out");
    std::filesystem::create_symlink(path_ / "secret", path_ / "root/absolute");
    std::filesystem::create_symlink("..", path_ / "root/up");
    std::filesystem::create_symlink("sub/file", path_ / "root/within");
    std::filesystem::create_symlink("round", path_ / "root/round");
    if (::mkfifo((path_ / "root/pipe").c_str(), 0600) != 0) throw std::system_error(errno, std::system_category());
  }
  ~folders() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  folders(const folders&) = delete;
  folders& operator=(const folders&) = delete;
  [[nodiscard]] std::string root() const { return (path_ / "root").string(); }

 private:
  std::filesystem::path path_;
};

// What is read through a descriptor, or "-errno".
std::string content(int fd) {
  if (fd < 0) return std::to_string(fd);
  const auto owner = ramie::file::from_native(fd);
  char text[16];
  const ssize_t n = ::read(fd, text, sizeof text);
  return n < 0 ? "unreadable" : std::string(text, static_cast<std::size_t>(n));
}

std::string failure(int error) {
  return std::to_string(-error);
}

}  // namespace

TEST_CASE("Targets become paths below the root", "[unit][http]") {
  CHECK(path_of("/") == "./");
  CHECK(path_of("/a/b") == "a/b");
  CHECK(path_of("/a/b/") == "a/b/");
  CHECK(path_of("/a?b=/../..") == "a");
  CHECK(path_of("//a///b") == "a/b");
  CHECK(path_of("/./a/./b/.") == "a/b/");
  CHECK(path_of("/a/../b") == "b");
  CHECK(path_of("/a/b/..") == "a/");
  CHECK(path_of("/a/..") == "./");
  CHECK(path_of("/x.") == "x.");
  CHECK(path_of("/...") == "...");
  CHECK(path_of("/a/x..") == "a/x..");
  CHECK(path_of("/%41%20%c3%BC") == "A \xc3\xbc");
  CHECK(path_of("/%252e%252e") == "%2e%2e");  // decoded once
  CHECK(path_of("http://host:80/a?b") == "a");
  CHECK(path_of("HTTP://host") == "./");
  CHECK(path_of("http://host?a/b") == "./");
}

TEST_CASE("Targets that lead out of the root, or are none, are refused", "[unit][http]") {
  for (const char* const bad : {"/..",    "/../a",  "/a/../../b", "/%2e%2e/a", "/.%2E/a",       "/a/%2e%2e/%2e%2e/b",
                                "/a%2fb", "/a%2Fb", "/..\\a",     "/..%5ca",   "/a%00b",        "/a%0d%0ab",
                                "/a%7f",  "/%",     "/%2",        "/%g0",      "/%0g",          "a",
                                "*",      "",       "host:443",   "http:///a", "https://host/a"}) {
    CAPTURE(bad);
    CHECK(path_of(bad) == "400");
  }
  CHECK(path_of("/" + std::string(http::target_path::capacity - 1, 'a')).size() == http::target_path::capacity - 1);
  CHECK(path_of("/" + std::string(http::target_path::capacity, 'a')) == "414");
}

TEST_CASE("A path takes a further segment only if it fits", "[unit][http]") {
  http::target_path p;
  REQUIRE(p.parse("/") == http::status::ok);
  REQUIRE(p.append("index.html"));
  CHECK(p.view() == "index.html");
  REQUIRE(p.parse("/a/") == http::status::ok);
  REQUIRE(p.append("b"));
  CHECK(p.view() == "a/b");
  REQUIRE(p.parse("/" + std::string(http::target_path::capacity - 1, 'a')) == http::status::ok);
  CHECK_FALSE(p.append("b"));
}

TEST_CASE("Nothing outside the root is opened, whatever links say", "[unit][http]") {
  const folders f;
  const http::root root(f.root().c_str());
  const auto by_kernel = [&](const char* path) { return content(root.open(path, http::wait_for_disk::yes)); };
  const auto by_segments = [&](const char* path) { return content(root.open_by_segments(path)); };
  CHECK(by_kernel("file") == "file");
  CHECK(by_kernel("sub/file") == "sub");
  CHECK(by_segments("file") == "file");
  CHECK(by_segments("sub/file") == "sub");
  for (const char* const outside :
       {"out", "absolute", "up/secret", "../secret", "sub/../../secret", "/etc/passwd", "round"}) {
    CAPTURE(outside);
    CHECK(root.open(outside, http::wait_for_disk::yes) < 0);
    CHECK(root.open(outside, http::wait_for_disk::no) < 0);
  }
  for (const char* const link : {"out", "absolute", "up/secret", "within", "round"}) {
    CAPTURE(link);
    CHECK(root.open_by_segments(link) < 0);
  }
  CHECK(by_kernel("nothing") == failure(ENOENT));
  CHECK(by_segments("nothing") == failure(ENOENT));
  CHECK(by_segments("file/file") == failure(ENOTDIR));
  CHECK(by_segments((std::string(300, 'a') + "/b").c_str()) == failure(ENAMETOOLONG));
  CHECK(by_kernel("sub") == "unreadable");
  CHECK(by_kernel(".") == "unreadable");
  const auto pipe = ramie::file::from_native(root.open("pipe", http::wait_for_disk::yes));  // does not wait for a writer
  CHECK(pipe.is_open());
}

TEST_CASE("What is in memory is opened without the disk, or not at all", "[unit][http]") {
  const folders f;
  const http::root root(f.root().c_str());
  REQUIRE(content(root.open("sub/file", http::wait_for_disk::yes)) == "sub");
  const std::string now = content(root.open("sub/file", http::wait_for_disk::no));
  CHECK((now == "sub" || now == failure(EAGAIN)));
  CHECK_THROWS_AS(http::root((f.root() + "/file").c_str()), std::system_error);
}

TEST_CASE("Ranges are cut to what there is", "[unit][http]") {
  CHECK(range_of("bytes=0-99", 1000) == "0-99");
  CHECK(range_of("bytes=0-99", 50) == "0-49");
  CHECK(range_of("Bytes=7-", 10) == "7-9");
  CHECK(range_of("bytes=9-9", 10) == "9-9");
  CHECK(range_of("bytes=10-", 10) == "beyond");
  CHECK(range_of("bytes=0-", 0) == "beyond");
  CHECK(range_of("bytes=-3", 10) == "7-9");
  CHECK(range_of("bytes=-30", 10) == "0-9");
  CHECK(range_of("bytes=-0", 10) == "beyond");
  CHECK(range_of("bytes=-3", 0) == "beyond");
  CHECK(range_of("bytes=0-99999999999999999999999999", 10) == "0-9");
  CHECK(range_of("bytes=99999999999999999999999999-", 10) == "beyond");
  for (const char* const other : {"", "bytes", "bytes=", "bytes=-", "bytes=a-b", "bytes=1", "bytes=5-4",
                                  "bytes=0-1,2-3", "lines=0-1", "bytes=1-2x"}) {
    CAPTURE(other);
    CHECK(range_of(other, 10) == "whole");
  }
}

TEST_CASE("Dates are written and read as HTTP does", "[unit][http]") {
  constexpr http::seconds example = 784111777, now = 1'700'000'000;
  CHECK(date_of(example) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(date_of(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
  CHECK(date_of(951782400) == "Tue, 29 Feb 2000 00:00:00 GMT");
  CHECK(date_of(-1) == "Wed, 31 Dec 1969 23:59:59 GMT");
  CHECK(date_of(INT64_MAX) == "Fri, 31 Dec 9999 23:59:59 GMT");
  CHECK(http::parse_date("Sun, 06 Nov 1994 08:49:37 GMT", now) == example);
  CHECK(http::parse_date("Sunday, 06-Nov-94 08:49:37 GMT", now) == example);
  CHECK(http::parse_date("Sun Nov  6 08:49:37 1994", now) == example);
  CHECK(http::parse_date("Sunday, 06-Nov-72 08:49:37 GMT", now) == 3245647777);  // at most 50 years ahead
  CHECK(http::parse_date("Sunday, 06-Nov-74 08:49:37 GMT", now) == 152959777);
  for (const char* const bad :
       {"", "Sun", "Sun, 06 Nov 1994", "Sun, 6 Nov 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 GMT ", "Sun, 31 Feb 1994 08:49:37 GMT", "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 nov 1994 08:49:37 GMT", "Sun, 06 anF 1994 08:49:37 GMT", "Sun, 00 Nov 1994 08:49:37 GMT",
        "Sun Nov 06 08:49:37 GMT"}) {
    CAPTURE(bad);
    CHECK_FALSE(http::parse_date(bad, now));
  }
}

TEST_CASE("Types go by the end of the name", "[unit][http]") {
  CHECK(http::content_type("a/index.HTML") == "text/html; charset=utf-8");
  CHECK(http::content_type("a.css/file") == "application/octet-stream");
  CHECK(http::content_type("x.tar.gz") == "application/gzip");
  CHECK(http::content_type("png") == "application/octet-stream");
  CHECK(http::content_type("a.") == "application/octet-stream");
}
