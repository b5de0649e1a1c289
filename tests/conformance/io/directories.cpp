// SPDX-License-Identifier: BSL-1.0
// Directories, and what is done with files by name.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/ramie.hpp>
#include <support/each_mechanism.hpp>

namespace conformance_directories {

using namespace std::chrono_literals;
using ramie::directory_walk;
using test::error_of;
using test::findings;
using test::with_each_mechanism;
using test::with_each_mechanism_and_without;
namespace fs = std::filesystem;

// Names below `home`, in order.
std::set<std::string> walked(const fs::path& home, ramie::walk_options how = {}) {
  std::set<std::string> names;
  directory_walk all(home, how);
  while (const auto entry = all.next()) names.insert(entry->path.lexically_relative(home).string());
  return names;
}

void plant(const fs::path& home) {
  (void)ramie::create_directories(home / "a" / "b" / "c");
  ramie::write_file(home / "top", "1");
  ramie::write_file(home / "a" / "one", "22");
  ramie::write_file(home / "a" / "b" / "c" / "deep", "333");
  fs::create_directory_symlink("..", home / "a" / "up");
}

TEST_CASE("a directory is listed with the kinds of what is in it", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    found.expect(ramie::list_directory(home.path()).empty());
    plant(home.path());
    (void)::mkfifo((home.path() / "pipe").c_str(), 0600);
    fs::create_symlink("nowhere", home.path() / "link");
    std::map<std::string, fs::file_type> kinds;
    for (const auto& entry : ramie::list_directory(home.path())) {
      kinds[entry.path.filename()] = entry.kind;
      EXPECT(found, entry.path.parent_path() == home.path(), entry.depth == 0, !entry.error);
    }
    EXPECT(found, kinds == (std::map<std::string, fs::file_type>{{"a", fs::file_type::directory},
                                                                 {"top", fs::file_type::regular},
                                                                 {"pipe", fs::file_type::fifo},
                                                                 {"link", fs::file_type::symlink}}));
    std::error_code ec;
    EXPECT(found, ramie::list_directory(home.path() / "none", ec).empty(), ec == std::errc::no_such_file_or_directory);
    EXPECT(found, error_of([&] { (void)ramie::list_directory(home.path() / "top"); }) == std::errc::not_a_directory);
  });
}

TEST_CASE("a large directory is listed and walked whole", "[conformance][directories]") {
  findings found;
  ramie::run(test::with_workers(2), [&] {
    const ramie::temporary_directory home(test::in_memory());
    for (int i = 0; i < 3000; ++i) fs::create_symlink("x", home.path() / std::to_string(i));
    const auto listed = ramie::list_directory(home.path());
    const auto names = walked(home.path());
    EXPECT(found, listed.size() == 3000, names.size() == 3000);
    for (const auto& entry : listed) found.expect(names.contains(entry.path.filename()));
  });
  CHECK(found.wrong() == "");
}

TEST_CASE("a walk hands out all that is below, in batches of any size", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    plant(home.path());
    const std::set<std::string> all{"a", "top", "a/b", "a/one", "a/up", "a/b/c", "a/b/c/deep"};
    for (const std::size_t batch : {0, 1, 2, 256}) EXPECT(found, walked(home.path(), {.batch = batch}) == all);
    EXPECT(found, walked(home.path(), {.max_depth = 0}) == (std::set<std::string>{"a", "top"}));
    EXPECT(found, walked(home.path(), {.max_depth = 1}) == (std::set<std::string>{"a", "top", "a/b", "a/one", "a/up"}));
    directory_walk some(home.path());
    std::vector<std::string> names;
    std::map<std::string, unsigned> depths;
    while (const auto entry = some.next()) {
      names.push_back(entry->path.filename());
      depths[names.back()] = entry->depth;
      if (names.back() == "b") some.skip();
    }
    EXPECT(found, names.size() == 5, std::find(names.begin(), names.end(), "c") == names.end());
    EXPECT(found, depths["a"] == 0, depths["one"] == 1);
    found.expect(!some.next());  // and so it stays
    directory_walk rest(home.path());
    (void)rest.next();  // and the rest is left
  });
}

TEST_CASE("a walk that follows links enters each directory once", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    plant(home.path());
    fs::create_symlink("nowhere", home.path() / "dangling");
    fs::create_symlink("top", home.path() / "to-file");
    int deep = 0, errors = 0;
    directory_walk all(home.path(), {.follow_symlinks = true});
    while (const auto entry = all.next()) {
      deep += entry->path.filename() == "deep";
      errors += entry->error ? 1 : 0;
      if (entry->error) EXPECT(found, entry->path.filename() == "dangling");
    }
    EXPECT(found, deep == 1, errors == 1);
    found.expect(walked(home.path() / "a" / "up").contains("a/b/c/deep"));  // the root itself may be one
  });
}

TEST_CASE("a walk goes on behind what it can't enter", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    plant(home.path());
    std::error_code ec;
    EXPECT(found, !directory_walk(home.path() / "none").next(ec), ec == std::errc::no_such_file_or_directory);
    EXPECT(found, error_of([&] { (void)directory_walk(home.path() / "none").next(); }) ==
                      std::errc::no_such_file_or_directory);
    directory_walk all(home.path(), {.batch = 1});
    std::vector<std::string> failed;
    bool saw_one = false;
    while (const auto entry = all.next()) {
      const std::string name = entry->path.filename();
      if (name == "b" && !entry->error) (void)ramie::remove_all(entry->path);  // gone before it is entered
      if (entry->error) {
        failed.push_back(name);
        EXPECT(found, entry->error == std::errc::no_such_file_or_directory, entry->is_directory(), entry->depth == 1);
      }
      saw_one = saw_one || name == "one";
    }
    EXPECT(found, failed == std::vector<std::string>{"b"}, saw_one);
  });
}

// How many descriptors lead there, or to what is below. Whatever else a runtime opens meanwhile does not count.
long descriptors_below(const fs::path& where) {
  long count = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    count += fs::read_symlink(entry.path(), gone).string().starts_with(where.string());
  }
  return count;
}

TEST_CASE("a deep tree is walked with one descriptor", "[conformance][directories]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    fs::path deep = home.path();
    const int depth = test::scaled(200, 40);
    for (int i = 0; i < depth; ++i) deep /= "d";
    (void)ramie::create_directories(deep);
    directory_walk all(home.path(), {.batch = 1});  // the directory is open while there may be more
    int count = 0;
    long most = 0;
    while (all.next()) {
      ++count;
      most = std::max(most, descriptors_below(home.path()));
    }
    EXPECT(found, count == depth, most == 1);
    EXPECT(found, ramie::remove_all(home.path() / "d") == static_cast<std::uintmax_t>(depth));
  });
}

TEST_CASE("directories and files are made, renamed and removed", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto at = [&](const char* name) { return home.path() / name; };
    EXPECT(found, ramie::create_directory(at("d")), !ramie::create_directory(at("d")));
    EXPECT(found,
           error_of([&] { (void)ramie::create_directory(at("x/y/z")); }) == std::errc::no_such_file_or_directory);
    EXPECT(found, ramie::create_directories(at("x/y/z")), !ramie::create_directories(at("x/y/z")));
    ramie::write_file(at("x/f"), "1");
    ramie::rename(at("x/f"), at("d/g"));
    EXPECT(found, ramie::read_file(at("d/g")) == "1", !fs::exists(at("x/f")));
    std::error_code ec;
    ramie::rename(at("x/f"), at("d/h"), ec);
    EXPECT(found, ec == std::errc::no_such_file_or_directory);
    EXPECT(found, error_of([&] { (void)ramie::remove(at("d")); }) == std::errc::directory_not_empty);
    EXPECT(found, ramie::remove(at("d/g")), !ramie::remove(at("d/g")), ramie::remove(at("d"), ec), !ec);
    fs::create_symlink("/", at("x/root"));
    EXPECT(found, ramie::remove_all(at("x")) == 4, ramie::remove_all(at("x")) == 0);
  });
}

TEST_CASE("a copy appears when it is complete", "[conformance][directories]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto from = home.path() / "from", to = home.path() / "to";
    const std::string content(1'500'000, 'c');
    ramie::write_file(from, content);
    fs::permissions(from, static_cast<fs::perms>(0751));
    EXPECT(found, ramie::copy_file(from, to) == content.size(), ramie::read_file(to) == content);
    EXPECT(found, ramie::metadata(to).permissions == static_cast<fs::perms>(0751));
    EXPECT(found, error_of([&] { (void)ramie::copy_file(from, to); }) == std::errc::file_exists);
    ramie::write_file(from, "short");
    EXPECT(found, ramie::copy_file(from, to, ramie::existing::replace) == 5, ramie::read_file(to) == "short");
    EXPECT(found, ramie::copy_file("/proc/self/status", to, ramie::existing::replace) > 100);  // says it is empty
    std::error_code ec;
    (void)ramie::copy_file(home.path() / "none", to, ramie::existing::replace, ec);
    EXPECT(found, ec == std::errc::no_such_file_or_directory);
    (void)ramie::copy_file(home.path(), to, ramie::existing::replace, ec);
    EXPECT(found, ec == std::errc::is_a_directory);
    EXPECT(found, ramie::list_directory(home.path()).size() == 2);
  });
}

TEST_CASE("a copy that is cancelled leaves nothing", "[conformance][directories]") {
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    {
      ramie::file big = ramie::file::open(home.path() / "big", ramie::open_mode::write | ramie::open_mode::create);
      big.truncate(std::uint64_t{64} << 20);  // a hole, and several pieces
    }
    for (int i = 0; i < 4; ++i) {
      const bool done =
          ramie::with_timeout(i * 1ms, [&] { (void)ramie::copy_file(home.path() / "big", home.path() / "copy"); });
      EXPECT(found, ramie::list_directory(home.path()).size() == (done ? 2u : 1u));
      (void)ramie::remove(home.path() / "copy");
    }
  });
}

// FS14. The thread of the pool that syncs the copy is held there until the copier has been cancelled.
std::atomic<bool> is_at_sync{false}, may_go_on{false};

TEST_CASE("a copy that is cancelled while it takes its place is made all the same", "[conformance][directories]") {
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
  with_each_mechanism([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto from = home.path() / "from", to = home.path() / "to";
    ramie::write_file(from, "copied");
    is_at_sync = may_go_on = false;
    faults::told = [](fault at) noexcept {
      if (at != fault::file_sync || is_at_sync.exchange(true)) return;
      test::until([] { return may_go_on.load(); });
    };
    std::atomic<bool> copied{false};
    ramie::nursery n;
    n.spawn([&] {
      (void)ramie::copy_file(from, to);
      copied = true;
    });
    while (!is_at_sync) ramie::yield();
    n.cancel("too late");
    may_go_on = true;
    n.join();
    faults::told = nullptr;
    EXPECT(found, copied.load(), ramie::read_file(to) == "copied", ramie::list_directory(home.path()).size() == 2);
  });
}

TEST_CASE("a temporary directory goes with its object, also in a cancelled fiber", "[conformance][directories]") {
  with_each_mechanism([](findings& found) {
    fs::path first, second, kept;
    {
      ramie::temporary_directory a(test::in_memory()), b(test::in_memory(), "other-");
      first = a.path();
      second = b.path();
      EXPECT(found, first != second, second.filename().string().starts_with("other-"));
      EXPECT(found, ramie::metadata(first).permissions == fs::perms::owner_all);
      plant(first);
      plant(second);
      a = std::move(b);
      EXPECT(found, !fs::exists(first), a.path() == second);
      ramie::temporary_directory c(test::in_memory());
      kept = c.release();
      found.expect(c.path().empty());
    }
    EXPECT(found, !fs::exists(second), fs::exists(kept), ramie::remove(kept));
    (void)ramie::with_timeout(0s, [&] {
      std::optional<ramie::temporary_directory> home;
      {
        const ramie::shield for_now;
        home.emplace(test::in_memory());
        first = home->path();
        plant(first);
      }
      ramie::check_cancelled();
    });
    EXPECT(found, !first.empty(), !fs::exists(first));
    ramie::temporary_directory now;  // where they usually are
    first = now.path();
    now.remove();
    EXPECT(found, !fs::exists(first), now.path().empty());
    EXPECT(found,
           error_of([] { ramie::temporary_directory none("/no/such/place"); }) == std::errc::no_such_file_or_directory);
  });
}

// FS14. The pool has one thread, which is held until the copy and the other one have asked for it: what the other one
// writes comes between the beginning of the copy and its end.
TEST_CASE("a copy does not go over what has come meanwhile", "[conformance][directories]") {
  std::error_code ec;
  std::string there;
  std::size_t entries = 0;
  auto o = test::with_workers(1);
  o.max_blocking_threads = 1;
  ramie::run(o, [&] {
    const ramie::temporary_directory home(test::in_memory());
    const auto from = home.path() / "from", to = home.path() / "to";
    ramie::write_file(from, "copied");
    std::atomic<bool> both_wait{false};
    ramie::nursery n;
    n.spawn([&] { ramie::blocking([&] { test::until([&] { return both_wait.load(); }); }); });
    n.spawn([&] { (void)ramie::copy_file(from, to, ramie::existing::keep, ec); });
    n.spawn([&] { ramie::write_file(to, "another's"); });
    ramie::yield();
    both_wait = true;
    n.join();
    there = ramie::read_file(to);
    entries = ramie::list_directory(home.path()).size();
  });
  CHECK(ec == std::errc::file_exists);
  CHECK(there == "another's");
  CHECK(entries == 2);
}

}  // namespace conformance_directories
