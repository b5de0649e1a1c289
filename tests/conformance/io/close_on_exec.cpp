// SPDX-License-Identifier: BSL-1.0
// No descriptor that ramie opens, for however short a time, is one that another program would inherit.
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/thread_meter.hpp>
#include <ramie/ramie.hpp>
#include <support/net.hpp>
#include <support/channel_observer.hpp>

namespace {

// What was closed or listed while somebody watched, and how many of that an exec would have left open until then.
std::atomic<bool> moments_are_watched{false};
std::atomic<int> moments{0}, inheritable_moments{0};

[[maybe_unused]] void look_at(int fd) noexcept {
  if (!moments_are_watched.load(std::memory_order_relaxed)) return;
  const int flags = ::fcntl(fd, F_GETFD);
  moments += flags >= 0;
  inheritable_moments += flags >= 0 && (flags & FD_CLOEXEC) == 0;
}

}  // namespace

#if !defined(RAMIE_TSAN) && !defined(RAMIE_ASAN)  // which have a close() of their own
// Take the place of the C library's: what is open only for a moment is seen when that ends, and a directory before
// fdopendir() sets the flag.
extern "C" int close(int fd) {
  look_at(fd);
  return static_cast<int>(::syscall(SYS_close, fd));
}
extern "C" DIR* fdopendir(int fd) {
  static const auto real = reinterpret_cast<decltype(&::fdopendir)>(::dlsym(RTLD_NEXT, "fdopendir"));
  look_at(fd);
  return real(fd);
}
#endif

namespace conformance_close_on_exec {

using ramie::address;
using ramie::stdio;
using test::findings;
namespace faults = ramie::platform::faults;

// What descriptors lead to, by number: those that an exec would leave open, or all.
std::map<int, std::string> descriptors(bool only_inheritable) {
  std::map<int, std::string> all;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    const int fd = std::atoi(entry.path().filename().c_str());
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags < 0 || (only_inheritable && (flags & FD_CLOEXEC) != 0)) continue;
    std::error_code gone;
    all[fd] = std::filesystem::read_symlink(entry.path(), gone).string();
  }
  return all;
}
long how_many(std::string_view kind) {
  long count = 0;
  for (const auto& [fd, target] : descriptors(false)) count += target.find(kind) != std::string::npos;
  return count;
}

// Compares with what there was when it was made.
class inheritance {
 public:
  [[nodiscard]] bool unchanged() const { return descriptors(true) == before_; }

 private:
  const std::map<int, std::string> before_ = descriptors(true);
};

TEST_CASE("sockets are closed on exec, however they come into being", "[conformance][net][close-on-exec]") {
  const auto open_all = [](findings& found) {
    const inheritance inherited;
    auto listener = ramie::tcp_listener::bind(address::ipv4_loopback(0));
    found.expect(inherited.unchanged());
    auto near = ramie::tcp_stream::connect(listener.local_address());
    found.expect(inherited.unchanged());
    auto far = listener.accept();
    found.expect(inherited.unchanged());
    address peer;
    auto waiting = ramie::connect(std::vector{listener.local_address()});
    found.expect(inherited.unchanged());
    auto with_peer = listener.accept(peer);
    found.expect(inherited.unchanged());
    auto datagrams = ramie::udp_socket::bind(address::ipv4_loopback(0));
    found.expect(inherited.unchanged());
    const auto streams = ramie::unix_stream::pair();
    found.expect(inherited.unchanged());
    const auto packets = ramie::unix_datagram::pair();
    found.expect(inherited.unchanged());
    const ramie::temporary_directory home(test::in_memory());
    const auto path = address::unix_path((home.path() / "s").string());
    auto local = ramie::unix_listener::bind(path);
    found.expect(inherited.unchanged());
    auto local_near = ramie::unix_stream::connect(path);
    found.expect(inherited.unchanged());
    auto local_far = local.accept();
    found.expect(inherited.unchanged());
    auto named = ramie::unix_datagram::bind(address::unix_path((home.path() / "d").string()));
    found.expect(inherited.unchanged());
    auto halves = std::move(near).split();
    found.expect(inherited.unchanged());
  };
  test::on_each_io(open_all);
  test::as_thread_and_fiber(open_all);
}

TEST_CASE("what a plain thread waits with is closed on exec", "[conformance][net][close-on-exec]") {
  const inheritance inherited;
  auto listener = ramie::tcp_listener::bind(address::ipv4_loopback(0));
  const auto bells = how_many("eventfd");
  ramie::tcp_stream accepted;
  std::thread waits([&] { accepted = listener.accept(); });
  test::until([&] { return how_many("eventfd") > bells; });
  CHECK(inherited.unchanged());
  const auto near = ramie::tcp_stream::connect(listener.local_address());
  waits.join();
  CHECK(inherited.unchanged());
}

TEST_CASE("what a plain thread selects with is closed on exec", "[conformance][net][close-on-exec]") {
  const inheritance inherited;
  const auto ends = ramie::unix_stream::pair();
  const auto sets = how_many("eventpoll");
  ramie::channel<int> stop(0);
  std::thread waits([&] {
    ramie::select(ramie::on_readable(ends.first.native_handle(), [] {}), ramie::on_recv(stop, [](std::optional<int>) {}));
  });
  test::until([&] { return how_many("eventpoll") >= sets + 2; });  // its own, and the watcher's
  CHECK(inherited.unchanged());
  stop.close();
  waits.join();
}

TEST_CASE("what connects to several addresses is closed on exec", "[conformance][net][close-on-exec]") {
  test::with_each_io([](ramie::options o) {
    findings found;
    ramie::run(o, [&] {
      const inheritance inherited;
      const test::silent_host silent;
      const auto sockets = how_many("socket:"), sets = how_many("eventpoll");
      ramie::nursery n;
      n.spawn([&] { (void)ramie::connect(std::vector{silent.where(), silent.where()}); });
      test::yield_until([&] { return how_many("socket:") > sockets && how_many("eventpoll") > sets; });
      found.expect(inherited.unchanged());
      n.cancel("seen");
      n.join();
    });
    CHECK(found.wrong() == "");
  });
}

TEST_CASE("files, directories and pipes are closed on exec", "[conformance][files][close-on-exec]") {
  const auto open_all = [](findings& found) {
    const inheritance inherited;
    const ramie::temporary_directory home(test::in_memory());
    using ramie::open_mode;
    for (const auto mode : {open_mode::write | open_mode::create, open_mode::read, open_mode::read | open_mode::write,
                            open_mode::append, open_mode::write | open_mode::truncate}) {
      const auto f = ramie::file::open(home.path() / "f", mode);
      found.expect(inherited.unchanged());
    }
    ramie::directory_walk walk(home.path(), {.batch = 1});
    found.expect(walk.next().has_value());  // the directory is open while there is more
    found.expect(inherited.unchanged());
    const auto ends = ramie::make_pipe();
    found.expect(inherited.unchanged());
    const ramie::signals some{SIGUSR1};
    found.expect(inherited.unchanged());
  };
  test::with_each_mechanism_and_without(open_all);
}

// Looked at while they are there: when they are synced.
std::atomic<const inheritance*> looked_at{nullptr};
std::atomic<int> looks{0}, inheritable{0};

TEST_CASE("what is open only while a file is replaced is closed on exec", "[conformance][files][close-on-exec]") {
  const ramie::temporary_directory home(test::in_memory());
  const inheritance inherited;
  looked_at = &inherited;
  looks = inheritable = 0;
  faults::told = [](ramie::platform::fault at) noexcept {
    if (at != ramie::platform::fault::file_sync) return;
    ++looks;
    if (!looked_at.load()->unchanged()) ++inheritable;
  };
  ramie::write_file(home.path() / "f", std::string_view("text"));
  faults::told = nullptr;
  CHECK(looks == 2);  // the file, and its directory
  CHECK(inheritable == 0);
}

TEST_CASE("what belongs to child processes is closed on exec", "[conformance][processes][close-on-exec]") {
  const auto begin_some = [](findings& found) {
    const inheritance inherited;
    auto held = ramie::make_pipe();
    auto child = ramie::process_builder("cat")
                     .standard_input(stdio::pipe())
                     .standard_output(stdio::pipe())
                     .standard_error(stdio::pipe())
                     .spawn();
    found.expect(inherited.unchanged());  // three pipes and a pidfd
    ramie::process_builder("cat").standard_input(stdio::descriptor(held.reader.native_handle())).spawn().detach();
    found.expect(inherited.unchanged());  // the reaper's epoll and a pidfd
    held.writer.close();
    child.kill(SIGKILL);
    (void)child.wait();
  };
  const auto before = test::open_descriptors();
  test::as_thread_and_fiber(begin_some);
  test::until([&] { return test::open_descriptors() == before; });  // the reaper has done its work
}

TEST_CASE("what reads a child's output is closed on exec", "[conformance][processes][close-on-exec]") {
  test::with_each_mechanism([](findings& found) {
    const inheritance inherited;
    auto held = ramie::make_pipe();
    const auto sets = how_many("eventpoll");
    std::atomic<bool> ended{false};
    ramie::nursery n;
    n.spawn([&] {
      (void)ramie::process_builder("cat").standard_input(stdio::descriptor(held.reader.native_handle())).output();
      ended = true;
    });
    test::yield_until([&] { return ended || how_many("eventpoll") > sets; });
    EXPECT(found, !ended, inherited.unchanged());
    held.writer.close();
    n.join();
  });
}

TEST_CASE("what a thread is measured with is closed on exec", "[conformance][close-on-exec]") {
  const inheritance inherited;
  const auto meters = how_many("schedstat");
  ramie::platform::thread_meter meter;
  (void)meter.read();
  if (how_many("schedstat") == meters) LEFT_OUT("the kernel keeps no such account");
  CHECK(inherited.unchanged());
}

TEST_CASE("what is open only for a moment is closed on exec", "[conformance][files][processes][close-on-exec]") {
  if (test::sanitized) LEFT_OUT("sanitizers have a close() of their own");
  const auto at_work = [](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    const auto seen_in = [&](auto f) {
      moments = inheritable_moments = 0;
      moments_are_watched = true;
      f();
      moments_are_watched = false;
      found.expect(inheritable_moments == 0);
      return moments.load();
    };
    const auto path = home.path() / "f";
    found.expect(seen_in([&] { ramie::write_file(path, std::string_view("text")); }) >= 2);   // and its directory
    found.expect(seen_in([&] { (void)ramie::copy_file(path, home.path() / "copy"); }) >= 3);  // and its source
    auto f = ramie::file::open(path, ramie::open_mode::read);
    found.expect(seen_in([&] { f.close(); }) >= 2);  // a copy, for what its close has to tell
    found.expect(seen_in([&] { (void)ramie::directory_walk(home.path()).next(); }) >= 1);
    const auto call = [] { (void)ramie::process_builder("true").standard_input(stdio::pipe()).output(); };
    found.expect(seen_in(call) >= 12);  // three pipes, of which each end is moved above the standard ones
  };
  test::with_each_mechanism_and_without(at_work);
}

}  // namespace conformance_close_on_exec
