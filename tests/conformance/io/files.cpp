// SPDX-License-Identifier: BSL-1.0
// Files: what is read and written, what fails and how, what is left.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/cancelling.hpp>
#include <support/each_mechanism.hpp>
#include <support/io_faults.hpp>

namespace conformance_files {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::file;
using ramie::open_mode;
using namespace test;
namespace fs = std::filesystem;

const bool io_is_faulty = test::plan_io_faults_of_environment();

constexpr auto fresh = open_mode::read | open_mode::write | open_mode::create | open_mode::truncate;

std::span<const std::byte> bytes(std::string_view text) {
  return std::as_bytes(std::span(text));
}
std::span<std::byte> room(std::string& text) {
  return std::as_writable_bytes(std::span(text));
}
std::string some(file& f, std::size_t most) {
  std::string text(most, '?');
  text.resize(f.read_some(room(text)));
  return text;
}
std::string pattern(std::size_t size) {
  std::string text(size, ' ');
  for (std::size_t i = 0; i < size; ++i) text[i] = static_cast<char>('a' + i * 7 % 26 + i / 4096 % 3);
  return text;
}

TEST_CASE("what is written to a file is read again, at offsets and at the position", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    file f = file::open(home.path() / "f", fresh);
    f.write_all("hello, world");
    EXPECT(found, f.position() == 12);
    EXPECT(found, f.write_at(bytes("HELLO"), 0) == 5, f.position() == 12);
    std::string text(5, '?');
    EXPECT(found, f.read_at(room(text), 7) == 5, text == "world", f.position() == 12);
    f.seek(0);
    EXPECT(found, some(f, 5) == "HELLO", some(f, 100) == ", world", some(f, 1).empty());
    EXPECT(found, f.read_at(room(text), 100) == 0);    // beyond the end
    EXPECT(found, f.write_at(bytes("far"), 20) == 3);  // a hole
    EXPECT(found, ramie::read_file(home.path() / "f") == std::string("HELLO, world") + std::string(8, '\0') + "far");
    EXPECT(found, f.read_at(std::span<std::byte>(), 0) == 0, f.write_some({}) == 0);
    std::error_code ec = std::make_error_code(std::errc::io_error);
    EXPECT(found, f.read_at(room(text), 0, ec) == 5, !ec);
    EXPECT(found, error_of([&] { (void)f.read_at(room(text), ~std::uint64_t{0}); }) == std::errc::invalid_argument);
    f.seek(~std::uint64_t{0});
    EXPECT(found, error_of([&] { (void)some(f, 1); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("several buffers are read and written at once", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    file f = file::open(home.path() / "f", fresh);
    const std::array<std::span<const std::byte>, 3> out{bytes("one"), bytes(""), bytes("three")};
    EXPECT(found, f.write_at(out, 2) == 8);
    std::string a(4, '?'), b(100, '?');
    const std::array<std::span<std::byte>, 2> in{room(a), room(b)};
    EXPECT(found, f.read_at(in, 2) == 8, a == "onet", b.substr(0, 4) == "hree");
    std::error_code ec;
    EXPECT(found, f.read_at(in, 100, ec) == 0, !ec);
    const std::string letter = "x";
    const std::vector<std::span<const std::byte>> many(100, bytes(letter));
    EXPECT(found, f.write_at(many, 0) == 64);  // as many as it takes at once
    EXPECT(found, f.size() == 64);
  });
}

TEST_CASE("a file is opened as it was asked for", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "f";
    std::error_code ec;
    EXPECT(found, !file::open(path, open_mode::read, ec).is_open(), ec == std::errc::no_such_file_or_directory);
    const auto open = [&](open_mode mode) { return [&path, mode] { (void)file::open(path, mode); }; };
    EXPECT(found, error_of(open(open_mode::write)) == std::errc::no_such_file_or_directory);
    found.expect(!error_of(open(open_mode::write | open_mode::exclusive)));
    EXPECT(found, error_of(open(open_mode::write | open_mode::exclusive)) == std::errc::file_exists);
    ramie::write_file(path, "content");
    EXPECT(found, !error_of(open(open_mode::write | open_mode::create)), ramie::read_file(path) == "content");
    file reads = file::open(path);
    EXPECT(found, error_of([&] { reads.write_all("x"); }) == std::errc::bad_file_descriptor);
    file appends = file::open(path, open_mode::append);
    appends.write_all("ed");
    appends.write_all("!");
    EXPECT(found, ramie::read_file(path) == "contented!", appends.position() == 0);
    EXPECT(found, !error_of(open(open_mode::write | open_mode::truncate)), ramie::read_file(path).empty());
    EXPECT(found, error_of([&] { (void)file::open(home.path(), open_mode::write); }) == std::errc::is_a_directory);
    const auto shut = file::open(home.path() / "shut", fresh, fs::perms::owner_read);
    EXPECT(found, shut.metadata().permissions == fs::perms::owner_read);
    if (::geteuid() != 0) {
      EXPECT(found, error_of([&] { (void)file::open(home.path() / "shut", open_mode::write); }) ==
                        std::errc::permission_denied);
    }
    EXPECT(found, (::fcntl(reads.native_handle(), F_GETFD) & FD_CLOEXEC) != 0);
  });
}

TEST_CASE("a failure names the call and the file", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    std::string said;
    try {
      (void)ramie::read_file("/no/such/file");
    } catch (const fs::filesystem_error& e) {
      said = e.what();
      EXPECT(found, e.path1() == "/no/such/file");
    }
    EXPECT(found, said == "ramie: read_file: No such file or directory [/no/such/file]");
    try {
      ramie::rename("/no/such/file", "/no/such/other");
    } catch (const fs::filesystem_error& e) {
      said = e.what();
      EXPECT(found, e.path1() == "/no/such/file", e.path2() == "/no/such/other");
    }
    EXPECT(found, said == "ramie: rename: No such file or directory [/no/such/file] [/no/such/other]");
    file none;
    try {
      (void)none.read_all();
    } catch (const std::system_error& e) {
      said = e.what();
    }
    EXPECT(found, said == "ramie: file::read_all: Bad file descriptor");
  });
}

void read_whole(findings& found, const fs::path& path, std::size_t size) {
  const std::string content = pattern(size);
  ramie::write_file(path, content);
  EXPECT(found, ramie::read_file(path) == content);
  const auto same = ramie::read_file_bytes(path);
  EXPECT(found, std::string_view(reinterpret_cast<const char*>(same.data()), same.size()) == content);
  file f = file::open(path);
  f.seek(size / 2);
  EXPECT(found, f.read_all() == content.substr(size / 2), f.position() == size);
}

TEST_CASE("a file is read whole, also one that does not tell its size", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    for (const int size : {0, 1, 4095, 4096, test::scaled(3'000'001, 100'001)}) {
      read_whole(found, home.path() / "f", static_cast<std::size_t>(size));
    }
    EXPECT(found, ramie::read_file("/proc/self/status").find("Pid:") != std::string::npos);
    if (io_is_faulty) return;  // it never says EAGAIN, so nobody can wait for it
    file f = file::open("/dev/zero");
    EXPECT(found, some(f, 10) == std::string(10, '\0'));
  });
  findings found;
  ramie::run([&] {
    const ramie::temporary_directory disk;  // as a rule
    read_whole(found, disk.path() / "f", 10'000);
  });
  CHECK(found.wrong() == "");
}

TEST_CASE("metadata, truncation, sync", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "f";
    file f = file::open(path, fresh, static_cast<fs::perms>(0600));
    const auto began = std::chrono::system_clock::now();
    f.write_all(pattern(1000));
    f.sync();
    f.sync(true);
    std::error_code ec;
    f.sync(false, ec);
    EXPECT(found, !ec, f.size() == 1000);
    auto about = f.metadata();
    EXPECT(found, about.is_file(), about.size == 1000, about.permissions == static_cast<fs::perms>(0600));
    EXPECT(found, about.links == 1, about.user == ::geteuid());
    EXPECT(found, about.modified > began - 10s, about.modified < began + 60s);
    f.truncate(10);
    EXPECT(found, f.size() == 10, ramie::metadata(path).size == 10);
    f.truncate(20);
    EXPECT(found, ramie::read_file(path) == pattern(10) + std::string(10, '\0'));
    fs::create_symlink(path, home.path() / "link");
    EXPECT(found, ramie::metadata(home.path() / "link").inode == about.inode);
    EXPECT(found, ramie::symlink_metadata(home.path() / "link").kind == fs::file_type::symlink);
    found.expect(ramie::metadata(home.path()).is_directory());
    (void)ramie::metadata(home.path() / "none", ec);
    EXPECT(found, ec == std::errc::no_such_file_or_directory);
    file reads = file::open(path);
    EXPECT(found, error_of([&] { reads.truncate(0); }) == std::errc::invalid_argument);
  });
}

TEST_CASE("what fibers append at once does not overwrite each other", "[conformance][files]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "log";
    file shared = file::open(path, fresh);
    const int fibers = test::scaled(8, 4), lines = test::scaled(30, 10);
    ramie::nursery n;
    for (int i = 0; i < fibers; ++i) {
      n.spawn([&, i] {
        file own = file::open(path, open_mode::append);
        const std::string line = std::string(100, static_cast<char>('a' + i)) + "\n";
        for (int k = 0; k < lines; ++k) k % 2 == 0 ? own.write_all(line) : shared.append(line);
      });
    }
    n.join();
    const std::string all = ramie::read_file(path);
    EXPECT(found, all.size() == static_cast<std::size_t>(fibers * lines * 101));
    std::size_t whole = 0;
    for (std::size_t at = 0; at + 101 <= all.size(); at += 101) {
      whole += all.substr(at, 101) == std::string(100, all[at]) + "\n";
    }
    EXPECT(found, whole == static_cast<std::size_t>(fibers * lines));
    EXPECT(found, shared.position() == 0);
  });
}

TEST_CASE("what is appended goes to the end, or stays out when it is too late", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "log";
    std::string expected = "first ";
    ramie::write_file(path, expected);
    file f = file::open(path, open_mode::read | open_mode::write);
    std::error_code ec;
    f.append("second ", 1h);
    f.append(bytes("third "), ramie::deadline());
    EXPECT(found, f.append("fourth ", ec, 1h) == 7, !ec, f.append(bytes("fifth "), ec, 1h) == 6, !ec);
    expected += "second third fourth fifth ";
    const auto late = f.append("sixth", ec, 0s);
    EXPECT(found, ec ? late == 0 && ec == std::errc::timed_out : late == 5);
    if (!ec) expected += "sixth";
    EXPECT(found, ramie::read_file(path) == expected, f.position() == 0);
    auto ends = ramie::make_pipe();
    file pipe = file::from_native(ends.writer.release_native());
    EXPECT(found, pipe.append("x", ec, 1h) == 0, ec == std::errc::invalid_seek);
  });
}

TEST_CASE("fibers read one file at their offsets at once", "[conformance][files]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const std::string content = pattern(256 * 1024);
    ramie::write_file(home.path() / "f", content);
    file f = file::open(home.path() / "f");
    ramie::nursery n;
    for (std::size_t i = 0; i < 16; ++i) {
      n.spawn([&, i] {
        std::string piece(1000, '?');
        for (std::size_t at = i * 1000; at < content.size(); at += 16'000) {
          piece.resize(1000);
          piece.resize(f.read_at(room(piece), at));
          EXPECT(found, piece == content.substr(at, 1000));
        }
      });
    }
    n.join();
  });
}

TEST_CASE("a file that is written is the old one or the new one", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "f";
    ramie::write_file(path, "old");
    fs::permissions(path, static_cast<fs::perms>(0640));
    const auto before = ramie::metadata(path);
    file reader = file::open(path);
    ramie::write_file(path, bytes("new"));
    EXPECT(found, ramie::read_file(path) == "new", reader.read_all() == "old");
    const auto after = ramie::metadata(path);
    EXPECT(found, after.inode != before.inode, after.permissions == before.permissions);
    fs::create_symlink("f", home.path() / "link");
    ramie::write_file(home.path() / "link", "by way of it");
    EXPECT(found, fs::is_symlink(home.path() / "link"), ramie::read_file(path) == "by way of it");
    EXPECT(found, ramie::list_directory(home.path()).size() == 2);  // nothing else is left
    std::error_code ec;
    ramie::write_file(home.path(), "x", ec);
    EXPECT(found, ec == std::errc::is_a_directory);
    ramie::write_file(home.path() / "none" / "f", "x", ec);
    EXPECT(found, ec == std::errc::no_such_file_or_directory);
    if (!io_is_faulty) ramie::write_file("/dev/null", "x");  // is still what it was
    EXPECT(found, ramie::metadata("/dev/null").kind == fs::file_type::character);
  });
}

TEST_CASE("a full device is an error", "[conformance][files]") {
  if (io_is_faulty) LEFT_OUT("faults are injected into what can be waited for");
  with_each_mechanism_and_without([](findings& found) {
    file full = file::open("/dev/full", open_mode::write);
    std::error_code ec;
    EXPECT(found, full.write_some(bytes("x"), ec) == 0, ec == std::errc::no_space_on_device);
    EXPECT(found, full.write_all("x", ec) == 0, ec == std::errc::no_space_on_device);
    EXPECT(found, error_of([&] { full.write_all("x"); }) == std::errc::no_space_on_device);
    ramie::write_file("/dev/full", "x", ec);
    EXPECT(found, ec == std::errc::no_space_on_device);
  });
}

// A small disk of its own, seen by this thread and those that it starts. False: we may not.
bool mount_small_disk(const fs::path& where) {
  return ::unshare(CLONE_NEWNS) == 0 && ::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         ::mount("small", where.c_str(), "tmpfs", 0, "size=64k") == 0;
}

void fill_a_disk(findings& found, const fs::path& disk) {
  const auto path = disk / "f";
  ramie::write_file(path, "old");
  std::error_code ec;
  ramie::write_file(path, pattern(200'000), ec);
  EXPECT(found, ec == std::errc::no_space_on_device);
  EXPECT(found, ramie::read_file(path) == "old", ramie::list_directory(disk).size() == 1);
  file f = file::open(disk / "g", fresh);
  const auto held = f.write_all(pattern(200'000), ec);
  EXPECT(found, ec == std::errc::no_space_on_device, held > 0, held < 100'000, f.size() == held);
  EXPECT(found, f.append("more than there is: " + pattern(5000), ec) < 5000, ec == std::errc::no_space_on_device);
  ramie::remove(disk / "g");
  f = file();
  EXPECT(found,
         error_of([&] { (void)ramie::copy_file("/proc/self/exe", disk / "copy"); }) == std::errc::no_space_on_device);
  EXPECT(found, ramie::list_directory(disk).size() == 1);
  ramie::write_file(path, "new");
  EXPECT(found, ramie::read_file(path) == "new");
}

TEST_CASE("on a full disk the old file stays and the new one goes", "[conformance][files]") {
  for (const auto which : test::each_mechanism()) {
    findings found;
    const ramie::temporary_directory disk(test::in_memory());
    std::thread([&] {
      if (!mount_small_disk(disk.path())) return;
      fill_a_disk(found, disk.path());
      auto o = test::with_workers(2);
      o.io = which;
      ramie::run(o, [&] { fill_a_disk(found, disk.path()); });
      (void)::umount(disk.path().c_str());
    }).join();
    CHECK(found.wrong() == "");
  }
}

TEST_CASE("a file that may not grow is an error, and left as it was", "[conformance][files]") {
  struct sigaction before {
  }, ignore{};
  ignore.sa_handler = SIG_IGN;
  REQUIRE(::sigaction(SIGXFSZ, &ignore, &before) == 0);
  rlimit limit{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &limit) == 0);
  const rlimit small{10'000, limit.rlim_max};
  with_each_mechanism([&](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    ramie::write_file(home.path() / "f", "old");
    (void)::setrlimit(RLIMIT_FSIZE, &small);
    std::error_code ec;
    ramie::write_file(home.path() / "f", pattern(20'000), ec);
    EXPECT(found, ec == std::errc::file_too_large);
    file f = file::open(home.path() / "g", fresh);
    EXPECT(found, f.write_all(pattern(20'000), ec) == 10'000, ec == std::errc::file_too_large);
    (void)::setrlimit(RLIMIT_FSIZE, &limit);
    EXPECT(found, ramie::read_file(home.path() / "f") == "old", ramie::list_directory(home.path()).size() == 2);
  });
  (void)::sigaction(SIGXFSZ, &before, nullptr);
}

TEST_CASE("nothing is lost where less is transferred than could be", "[conformance][files]") {
  const auto all_kinds = (1u << ramie::platform::io_fault_count) - 1;
  ramie::platform::faults::plan_io_faults(all_kinds, 7);
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const std::string content = pattern(static_cast<std::size_t>(test::scaled(300'000, 70'000)));
    file f = file::open(home.path() / "f", fresh);
    f.write_all(content);
    f.seek(0);
    EXPECT(found, f.position() == 0, f.read_all() == content, ramie::read_file(home.path() / "f") == content);
    auto ends = ramie::make_pipe();
    ramie::nursery n;
    n.spawn([&] {
      ends.writer.write_all(content);
      ends.writer.close();
    });
    EXPECT(found, ends.reader.read_all() == content);
    n.join();
    EXPECT(found, ramie::process_builder("cat").output(content).out == content);
  });
  ramie::platform::faults::plan_io_faults(0, 0);
  (void)test::plan_io_faults_of_environment();
}

TEST_CASE("a file that is closed or none is a bad descriptor", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    file closed = file::open(home.path() / "f", fresh);
    const int number = closed.native_handle();
    const auto itself = test::inode_of(number);
    EXPECT(found, number >= 0, closed.is_open());
    closed.close();
    closed.close();
    EXPECT(found, !closed.is_open(), closed.native_handle() == -1, test::inode_of(number) != itself);
    file none;
    file moved = file::open(home.path() / "f");
    const file taken = std::move(moved);
    std::string text(1, '?');
    for (file* const f : {&closed, &none, &moved}) {
      const auto bad = std::errc::bad_file_descriptor;
      EXPECT(found, error_of([&] { (void)f->read_some(room(text)); }) == bad);
      EXPECT(found, error_of([&] { (void)f->write_at(bytes("x"), 0); }) == bad);
      EXPECT(found, error_of([&] { f->append("x"); }) == bad);
      EXPECT(found, error_of([&] { f->sync(); }) == bad, error_of([&] { (void)f->size(); }) == bad);
      std::error_code ec;
      EXPECT(found, f->read_all(ec).empty(), ec == bad);
      f->close();
    }
  });
}

// A named pipe with both ends open.
struct fifo {
  explicit fifo(const fs::path& path) {
    (void)::mkfifo(path.c_str(), 0600);
    reader = file::open(path);
    writer = file::open(path, open_mode::write);
  }
  file reader, writer;
};

TEST_CASE("a named pipe does not wait to be opened", "[conformance][files]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto path = home.path() / "pipe";
    (void)::mkfifo(path.c_str(), 0600);
    std::error_code ec;
    (void)file::open(path, open_mode::write, ec);
    EXPECT(found, ec == std::errc::no_such_device_or_address);
    fifo pipe(path);
    pipe.writer.write_all("by name");
    EXPECT(found, some(pipe.reader, 100) == "by name");
    std::string text(1, '?');
    (void)pipe.reader.read_at(room(text), 0, ec);
    EXPECT(found, ec == std::errc::invalid_seek);
    pipe.writer.write_all("the rest");
    pipe.writer.close();
    EXPECT(found, pipe.reader.read_all() == "the rest");
    pipe.writer = file::open(path, open_mode::write);
    pipe.reader.close();
    EXPECT(found, pipe.writer.write_all("x", ec) == 0, ec == std::errc::broken_pipe);
  });
}

TEST_CASE("a read that waits ends by its deadline, by cancellation, by closing", "[conformance][files]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    fifo pipe(home.path() / "pipe");
    std::string text(4, '?');
    std::error_code ec;
    EXPECT(found, pipe.reader.read_some(room(text), ec, deadline(1ms)) == 0, ec == std::errc::timed_out);
    pipe.writer.write_all("late");
    EXPECT(found, pipe.reader.read_some(room(text), io_is_faulty ? deadline() : deadline(-1s)) == 4,
           text == "late");

    EXPECT(found, test::is_cancelled_while_waiting([&] { (void)pipe.reader.read_some(room(text)); }));
    pipe.writer.write_all("kept");
    EXPECT(found, some(pipe.reader, 10) == "kept");

    const auto read = [&] {
      std::error_code why;
      (void)pipe.reader.read_some(room(text), why);
      return why;
    };
    EXPECT(found, test::result_of_waiting(read, [&] { pipe.reader.close(); }) == std::errc::bad_file_descriptor);
  });
}

TEST_CASE("a cancelled fiber opens and closes no file by halves", "[conformance][files]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    ramie::write_file(home.path() / "f", "old");
    file f = file::open(home.path() / "f");
    int cancelled = 0;
    const auto tries = [&](auto call) { cancelled += !ramie::with_timeout(0s, call); };
    tries([&] { (void)file::open(home.path() / "f"); });
    tries([&] { (void)some(f, 1); });
    tries([&] { ramie::write_file(home.path() / "f", "new"); });
    tries([&] { f.sync(); });
    tries([&] { f.close(); });
    EXPECT(found, cancelled == 5);
    found.expect(!f.is_open());  // all the same
    EXPECT(found, ramie::read_file(home.path() / "f") == "old");
  });
}

}  // namespace conformance_files
