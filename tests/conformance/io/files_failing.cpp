// SPDX-License-Identifier: BSL-1.0
// Files where it is easy to be careless: who may read what is being written, calls with nothing to do, moves onto
// themselves, named pipes that nobody has opened yet.
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <vector>

#include "io/src/fs/replacement.hpp"
#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/each_mechanism.hpp>
#include <support/streams.hpp>

namespace conformance_files_failing {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::file;
using ramie::open_mode;
using namespace test;
namespace fs = std::filesystem;

constexpr auto fresh = open_mode::read | open_mode::write | open_mode::create | open_mode::truncate;

mode_t mode_of(const fs::path& path) {
  struct stat about {};
  return ::stat(path.c_str(), &about) == 0 ? about.st_mode & 07777 : ~mode_t{0};
}

TEST_CASE("what replaces a file is never open to more than the file was", "[conformance][files]") {
  const ramie::temporary_directory home(test::in_memory());
  const mode_t before = ::umask(0);
  for (const mode_t mode : {0600u, 0400u, 0640u, 0755u}) {
    ramie::io_internal::replacement fresh_one;
    REQUIRE(fresh_one.create(home.path() / "secret", mode) == 0);
    struct stat about {};
    REQUIRE(::fstat(fresh_one.descriptor(), &about) == 0);
    CHECK((about.st_mode & 07777) == mode);  // from the first moment on
  }
  (void)::umask(before);
  CHECK(fs::is_empty(home.path()));
}

// After a crash the name must not lead to a file without its content: nothing is renamed before it is synced.
TEST_CASE("a file that can't be synced does not replace another", "[conformance][files]") {
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
  const struct all_well {
    ~all_well() { faults::plan_for(fault::file_sync, 0, 0); }
  } afterwards;
  const auto write = [](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "f";
    const auto entries = [&] { return std::distance(std::filesystem::directory_iterator(home.path()), {}); };
    faults::plan_for(fault::file_sync, 1, 1);
    std::error_code ec;
    ramie::write_file(path, std::string_view("never"), ec);
    EXPECT(found, ec == std::errc::io_error, entries() == 0);
    faults::plan_for(fault::file_sync, 0, 0);
    ramie::write_file(path, std::string_view("old"));
    EXPECT(found, faults::asked(fault::file_sync) == 2);  // the file, then its directory
    faults::plan_for(fault::file_sync, 1, 1);
    ramie::write_file(path, std::string_view("new"), ec);
    EXPECT(found, ec == std::errc::io_error, ramie::read_file(path) == "old", entries() == 1);
    faults::plan_for(fault::file_sync, 2, 2);
    ramie::write_file(path, std::string_view("new"), ec);  // in its place already, but not for sure
    EXPECT(found, ec == std::errc::io_error, ramie::read_file(path) == "new", entries() == 1);
  };
  with_each_mechanism_and_without(write);
}

TEST_CASE("a replaced or copied file has the permissions but not the powers", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto tool = home.path() / "tool", copy = home.path() / "copy";
    ramie::write_file(tool, "old");
    EXPECT(found, ::chmod(tool.c_str(), 06775) == 0);
    (void)ramie::copy_file(tool, copy);
    ramie::write_file(tool, "new");
    EXPECT(found, mode_of(tool) == 0775, mode_of(copy) == 0775);  // whatever the umask
  });
}

TEST_CASE("a file with the longest name there is can be replaced", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / std::string(255, 'n');
    for (const char* text : {"first", "second"}) {
      ramie::write_file(path, text);
      EXPECT(found, ramie::read_file(path) == text);
    }
  });
}

TEST_CASE("empty buffers among many don't look like the end", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    file f = file::open(home.path() / "f", fresh);
    std::string text = "some text", back(9, '?');
    std::vector<std::span<const std::byte>> from(100);
    from.push_back(ramie::bytes_of(text));
    EXPECT(found, f.write_at(from, 0) == 9);
    std::vector<std::span<std::byte>> to(100);
    to.push_back(test::writable(back));
    EXPECT(found, f.read_at(to, 0) == 9, back == text);
    to.pop_back();
    EXPECT(found, f.read_at(to, 0) == 0);  // no room at all
  });
}

TEST_CASE("a named pipe that nobody has written to yet is waited for, and no end", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "pipe";
    EXPECT(found, ::mkfifo(path.c_str(), 0600) == 0);
    file reader = file::open(path);
    std::string text(10, '?');
    std::error_code ec;
    EXPECT(found, reader.read_some(test::writable(text), ec, deadline(1ms)) == 0, ec == std::errc::timed_out);
    EXPECT(found, reader.read_some({}, ec) == 0, !ec);
    file writer = file::open(path, open_mode::write);
    writer.write_all("early");
    writer.close();
    EXPECT(found, reader.read_all() == "early", reader.read_all().empty());
    file other = file::open(path);
    file::open(path, open_mode::write).close();
    found.expect(other.read_all().empty());  // one came, and wrote nothing
  });
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "pipe";
    EXPECT(found, ::mkfifo(path.c_str(), 0600) == 0);
    file reader = file::open(path);
    ramie::nursery n;
    auto all = n.spawn([&] { return reader.read_all(); });
    for (int i = 0; i < 20; ++i) ramie::yield();
    file writer = file::open(path, open_mode::write);
    writer.write_all("late");
    writer.close();
    EXPECT(found, all.get() == "late");
    n.join();
  });
}

// How many of the calls stop a cancelled fiber.
template <class... Calls>
int stopped_by(Calls... calls) {
  return (int{!ramie::with_timeout(0s, calls)} + ...);
}

TEST_CASE("calls with nothing to do are cancellation points, too", "[conformance][files]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    file f = file::open(home.path() / "f", fresh), none;
    auto ends = ramie::make_pipe();
    ramie::pipe_reader no_reader;
    ramie::process no_process;
    std::error_code ec;
    std::byte one[1];
    constexpr auto too_far = ~std::uint64_t{0};
    EXPECT(found, stopped_by([&] { f.write_all(""); }, [&] { f.append("", ec); }, [&] { ends.writer.write_all(""); },
                             [&] { none.write_all("", ec); }, [&] { none.append("", ec); },
                             [&] { (void)none.size(ec); }, [&] { (void)none.read_some(one, ec); },
                             [&] { (void)f.read_at(one, too_far, ec); }, [&] { (void)no_reader.read_some(one, ec); },
                             [&] { (void)no_process.wait(ec); }, [&] { none.close(); }) == 11);
  });
}

TEST_CASE("nothing written to a file that is not open is an error, too", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    file f = file::open(home.path() / "f", fresh), none;
    f.write_all("");
    f.append("");
    std::error_code ec;
    EXPECT(found, f.size() == 0);
    for (file* closed : {&f, &none}) {
      closed->close();
      EXPECT(found, closed->write_all("", ec) == 0, ec == std::errc::bad_file_descriptor);
      EXPECT(found, closed->append("", ec) == 0, ec == std::errc::bad_file_descriptor);
    }
    auto ends = ramie::make_pipe();
    ends.writer.write_all("");
    ends.writer.close();
    EXPECT(found, ends.writer.write_all("", ec) == 0, ec == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a temporary directory moved onto itself stays", "[conformance][directories]") {
  ramie::temporary_directory home(test::in_memory());
  const auto path = home.path();
  auto& same = home;
  home = std::move(same);
  CHECK(home.path() == path);
  CHECK(fs::is_directory(path));
}

TEST_CASE("a walk that can't begin names the directory", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    ramie::directory_walk none("/no/such/directory");
    try {
      (void)none.next();
      found.expect(false);
    } catch (const fs::filesystem_error& e) {
      EXPECT(found, e.path1() == "/no/such/directory", e.code() == std::errc::no_such_file_or_directory);
    } catch (const std::system_error&) {
      found.expect(false);
    }
  });
}

TEST_CASE("SIGPIPE stays harmless when it is no longer waited for", "[conformance][signals]") {
  const auto ended = test::in_child([] {
    (void)std::signal(SIGPIPE, SIG_DFL);
    {
      const ramie::signals watched{SIGPIPE};
      (void)ramie::make_pipe();
    }
    auto ends = ramie::make_pipe();
    ends.reader.close();
    std::error_code ec;
    (void)ends.writer.write_all("x", ec);
    ::_exit(ec == std::errc::broken_pipe ? 0 : 1);
  });
  CHECK(ended.signal == 0);
  CHECK(ended.exit_code == 0);
}

}  // namespace conformance_files_failing
