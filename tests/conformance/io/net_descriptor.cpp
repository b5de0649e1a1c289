// SPDX-License-Identifier: BSL-1.0
// Waiting for descriptors that belong to somebody else.
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/platform/unique_fd.hpp>
#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/channel_observer.hpp>
#include <support/net.hpp>

namespace conformance_net_descriptor {

using namespace std::chrono_literals;
using ramie::readiness;
using ramie::wait_readable;
using ramie::wait_writable;
using ramie::testing::wait_all_blocked;
using test::error_of;
using test::findings;
using test::on_each_io;

// What a library would have: two descriptors that ramie knows nothing of. They block.
struct foreign_pair {
  enum kind { pipe, socket };
  explicit foreign_pair(kind what) {
    const int refused = what == pipe ? ::pipe2(ends, O_CLOEXEC) : ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
    if (refused != 0) throw std::system_error(errno, std::system_category(), "foreign_pair");
  }
  ~foreign_pair() {
    close_reader();
    close_writer();
  }
  foreign_pair(const foreign_pair&) = delete;
  foreign_pair& operator=(const foreign_pair&) = delete;

  [[nodiscard]] int reader() const { return ends[0]; }
  [[nodiscard]] int writer() const { return ends[1]; }
  void put() const { (void)!::write(ends[1], "x", 1); }
  void take() const {
    char byte;
    (void)!::read(ends[0], &byte, 1);
  }
  void fill() const {  // until there is no room
    const int flags = ::fcntl(ends[1], F_GETFL);
    (void)::fcntl(ends[1], F_SETFL, flags | O_NONBLOCK);
    const std::string much(1 << 16, 'x');
    while (::write(ends[1], much.data(), much.size()) > 0) {
    }
    (void)::fcntl(ends[1], F_SETFL, flags);
  }
  void drain() const {
    std::string much(1 << 20, '\0');
    (void)!::read(ends[0], much.data(), much.size());
  }
  void close_reader() { close_end(0); }
  void close_writer() { close_end(1); }

 private:
  void close_end(int which) {
    if (const int fd = std::exchange(ends[which], -1); fd >= 0) (void)::close(fd);
  }
  int ends[2] = {-1, -1};
};

// f(found, pair) for a pipe and for sockets, as a fiber with every mechanism.
template <class F>
void over_each_kind(F f) {
  on_each_io([&](findings& found) {
    for (const auto kind : {foreign_pair::pipe, foreign_pair::socket}) {
      foreign_pair ends(kind);
      f(found, ends);
    }
  });
}

TEST_CASE("a descriptor of somebody else is waited for until it is ready", "[conformance][net][descriptor]") {
  over_each_kind([](findings& found, foreign_pair& ends) {
    EXPECT(found, wait_writable(ends.writer()) == readiness::ready);
    std::atomic<int> told{0};
    ramie::nursery n;
    n.spawn([&] {
      EXPECT(found, wait_readable(ends.reader()) == readiness::ready);
      ++told;
    });
    wait_all_blocked();
    EXPECT(found, told == 0);
    ends.put();
    n.join();
    EXPECT(found, told == 1);
    EXPECT(found, wait_readable(ends.reader()) == readiness::ready);  // nothing was taken
    ends.take();
    EXPECT(found, wait_readable(ends.reader(), 0s) == readiness::timed_out);
  });
  over_each_kind([](findings& found, foreign_pair& ends) {
    ends.fill();
    std::atomic<int> told{0};
    ramie::nursery n;
    n.spawn([&] {
      EXPECT(found, wait_writable(ends.writer()) == readiness::ready);
      ++told;
    });
    wait_all_blocked();
    EXPECT(found, told == 0);
    ends.drain();
    n.join();
    EXPECT(found, told == 1);
  });
}

TEST_CASE("a descriptor of somebody else stays as it is", "[conformance][net][descriptor]") {
  const auto stays = [](findings& found, foreign_pair& ends) {
    for (const int blocks : {0, O_NONBLOCK}) {
      (void)::fcntl(ends.reader(), F_SETFL, blocks);
      const int flags = ::fcntl(ends.reader(), F_GETFL);
      const auto file = test::inode_of(ends.reader());
      EXPECT(found, wait_readable(ends.reader(), 1ms) == readiness::timed_out);
      ends.put();
      EXPECT(found, wait_readable(ends.reader()) == readiness::ready);
      EXPECT(found, ::fcntl(ends.reader(), F_GETFL) == flags, test::inode_of(ends.reader()) == file);
      ends.take();
    }
  };
  over_each_kind(stays);
  findings found;
  foreign_pair ends(foreign_pair::pipe);
  stays(found, ends);
  CHECK(found.wrong() == "");
}

TEST_CASE("a wait for a descriptor tells that the other end has gone", "[conformance][net][descriptor]") {
  on_each_io([](findings& found) {
    foreign_pair left(foreign_pair::pipe), unread(foreign_pair::pipe);
    left.put();
    left.close_writer();
    EXPECT(found, wait_readable(left.reader()) == readiness::ready);  // what was written before
    left.take();
    EXPECT(found, wait_readable(left.reader()) == readiness::hung_up);
    unread.close_reader();
    EXPECT(found, wait_writable(unread.writer()) == readiness::hung_up);

    foreign_pair parted(foreign_pair::pipe);
    ramie::nursery n;
    n.spawn([&] { EXPECT(found, wait_readable(parted.reader()) == readiness::hung_up); });
    wait_all_blocked();
    parted.close_writer();
    n.join();

    foreign_pair ended(foreign_pair::socket);  // the end of a stream can be read
    ended.close_writer();
    EXPECT(found, wait_readable(ended.reader()) == readiness::ready);
  });
}

TEST_CASE("a wait for a descriptor ends with its deadline, and what is there counts although it is late",
          "[conformance][net][descriptor]") {
  const auto check = [](findings& found, foreign_pair& ends) {
    std::error_code ec = std::make_error_code(std::errc::io_error);
    EXPECT(found, wait_readable(ends.reader(), 2ms) == readiness::timed_out);
    EXPECT(found, wait_readable(ends.reader(), ec, 2ms) == readiness::timed_out, !ec);
    ends.put();
    if (!test::io_is_faulty) EXPECT(found, wait_readable(ends.reader(), -1s) == readiness::ready);
    ends.fill();
    EXPECT(found, wait_writable(ends.writer(), 2ms) == readiness::timed_out);
    EXPECT(found, wait_writable(ends.writer(), ec, 0s) == readiness::timed_out, !ec);
  };
  over_each_kind(check);
  findings found;
  foreign_pair ends(foreign_pair::socket);
  check(found, ends);
  CHECK(found.wrong() == "");
}

TEST_CASE("a cancelled wait for a descriptor throws, and leaves nothing behind", "[conformance][net][descriptor]") {
  over_each_kind([](findings& found, foreign_pair& ends) {
    std::atomic<int> cancelled{0};
    {
      ramie::nursery n;
      for (int i = 0; i < 2; ++i) {
        n.spawn([&] { test::count_cancelled(cancelled, [&] { (void)wait_readable(ends.reader(), 1h); }); });
      }
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, cancelled == 2);
    ends.put();
    int thrown = 0;
    std::error_code ec;
    const auto expect_thrown = [&](auto f) { thrown += !ramie::with_timeout(0s, f); };
    expect_thrown([&] { (void)wait_readable(ends.reader()); });  // also if it need not wait
    expect_thrown([&] { (void)wait_writable(ends.writer(), ec); });
    expect_thrown([&] { (void)wait_readable(-1, ec); });  // or could not
    EXPECT(found, thrown == 3);
    EXPECT(found, wait_readable(ends.reader()) == readiness::ready);
  });
}

TEST_CASE("any number of fibers and threads wait for one descriptor", "[conformance][net][descriptor]") {
  on_each_io([](findings& found) {
    foreign_pair ends(foreign_pair::socket);
    std::atomic<int> told{0};
    const auto wait_to_read = [&] {
      EXPECT(found, wait_readable(ends.reader()) == readiness::ready);
      ++told;
    };
    std::thread one(wait_to_read);
    ramie::nursery n;
    for (int i = 0; i < 4; ++i) n.spawn(wait_to_read);
    n.spawn([&] { EXPECT(found, wait_writable(ends.reader()) == readiness::ready); });
    auto in_vain = n.spawn([&] { return wait_readable(ends.reader(), 1ms); });
    EXPECT(found, in_vain.get() == readiness::timed_out);
    wait_all_blocked();
    EXPECT(found, told == 0);
    ends.put();
    n.join();
    ramie::blocking([&] { one.join(); });
    EXPECT(found, told == 5);
  });
}

TEST_CASE("what is no descriptor can't be waited for", "[conformance][net][descriptor]") {
  constexpr int no_such = 1'000'000;
  const auto check = [](findings& found) {
    for (const int fd : {-1, no_such}) {
      std::error_code ec;
      EXPECT(found, wait_readable(fd, ec) == readiness::failed, ec == std::errc::bad_file_descriptor);
      EXPECT(found, wait_writable(fd, ec = {}) == readiness::failed, ec == std::errc::bad_file_descriptor);
      try {
        (void)wait_readable(fd);
        found.expect(false);
      } catch (const std::system_error& e) {
        EXPECT(found, e.code() == std::errc::bad_file_descriptor);
        EXPECT(found, std::string(e.what()).starts_with("ramie: wait_readable: "));
      }
      EXPECT(found, error_of([&] { (void)wait_writable(fd); }) == std::errc::bad_file_descriptor);
    }
  };
  on_each_io(check);
  findings found;
  check(found);
  CHECK(found.wrong() == "");
}

TEST_CASE("a regular file is always ready", "[conformance][net][descriptor]") {
  on_each_io([](findings& found) {
    const int fd = ::open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    EXPECT(found, wait_readable(fd) == readiness::ready, wait_writable(fd) == readiness::ready);
    (void)::close(fd);
  });
}

// However the wait ends: those who wait for whatever has the number then are not harmed.
TEST_CASE("a descriptor that is closed while somebody waits for it harms nobody else", "[conformance][net][descriptor]") {
  on_each_io([](findings& found) {
    foreign_pair first(foreign_pair::socket);
    std::atomic<bool> ended{false};
    ramie::nursery waits;
    waits.spawn([&, fd = first.reader()] {
      std::error_code ec;
      try {
        (void)wait_readable(fd, ec);
      } catch (const ramie::cancelled&) {
        ended = true;
        throw;
      }
      ended = true;
    });
    wait_all_blocked();
    first.close_reader();
    foreign_pair second(foreign_pair::socket);
    EXPECT(found, wait_readable(second.reader(), 1ms) == readiness::timed_out);
    second.put();
    EXPECT(found, wait_readable(second.reader()) == readiness::ready);
    EXPECT(found, wait_writable(second.writer()) == readiness::ready);
    waits.cancel("its owner has closed it");
    waits.join();
    EXPECT(found, ended.load());
  });
}

// Operations that the workers have under way.
std::size_t under_way() {
  std::size_t all = 0;
  for (const auto& w : ramie::runtime_internal::current_context().local->runs_in->pool.workers()) all += w->io.under_way();
  return all;
}

TEST_CASE("a select waits for a descriptor beside other things", "[conformance][net][descriptor][select]") {
  over_each_kind([](findings& found, foreign_pair& ends) {
    ramie::channel<int> numbers(1);
    const auto select_once = [&] {
      std::string won;
      ramie::select(ramie::on_readable(ends.reader(), [&](readiness what) { won = to_string(what); }),
                    ramie::on_recv(numbers, [&](std::optional<int> n) { won = std::to_string(*n); }));
      return won;
    };
    ends.put();
    EXPECT(found, select_once() == "ready", under_way() == 0);
    std::string at_once;
    ramie::select(ramie::on_readable(ends.reader(), [&] { at_once = "ready"; }),
                  ramie::otherwise([&] { at_once = "otherwise"; }));
    EXPECT(found, at_once == "ready" || test::io_is_faulty);
    ends.take();
    {
      ramie::nursery n;
      n.spawn([&] { EXPECT(found, select_once() == "ready"); });
      wait_all_blocked();
      ends.put();
    }
    ends.take();
    ramie::nursery n;  // it loses
    n.spawn([&] { EXPECT(found, select_once() == "7", under_way() == 0); });
    wait_all_blocked();
    (void)numbers.send(7);
    n.join();
    EXPECT(found, under_way() == 0);
    int written = 0;
    ramie::select(ramie::on_writable(ends.writer(), [&] { ++written; }),
                  ramie::on_readable(ends.reader(), [&] { written = 100; }));
    EXPECT(found, written == 1, under_way() == 0);
  });
}

TEST_CASE("a select on a descriptor tells that the other end has gone", "[conformance][net][descriptor][select]") {
  on_each_io([](findings& found) {
    foreign_pair parted(foreign_pair::pipe);
    ramie::nursery n;
    readiness told = readiness::failed;
    n.spawn([&] { ramie::select(ramie::on_readable(parted.reader(), [&](readiness what) { told = what; })); });
    wait_all_blocked();
    parted.close_writer();
    n.join();
    EXPECT(found, told == readiness::hung_up);
  });
}

TEST_CASE("a select on a descriptor that ends by time, cancellation or an error leaves nothing behind",
          "[conformance][net][descriptor][select]") {
  over_each_kind([](findings& found, foreign_pair& ends) {
    std::string won;
    const auto readable = [&] { return ramie::on_readable(ends.reader(), [&] { won = "readable"; }); };
    ramie::select(readable(), ramie::on_timeout(1ms, [&] { won = "time"; }));
    EXPECT(found, won == "time", under_way() == 0);
    ramie::select(readable(), ramie::otherwise([&] { won = "otherwise"; }));
    EXPECT(found, won == "otherwise", under_way() == 0);
    {
      ramie::nursery n;
      n.spawn([&] { ramie::select(readable()); });
      n.spawn([&] { ramie::select(readable(), readable()); });
      wait_all_blocked();
      n.cancel("enough");
      n.join();
    }
    EXPECT(found, won == "otherwise", under_way() == 0);
    EXPECT(found, error_of([] { ramie::select(ramie::on_readable(-1, [] {})); }) == std::errc::bad_file_descriptor);
    EXPECT(found, error_of([&] { ramie::select(ramie::on_readable(1'000'000, [] {}), readable()); }) ==
                      std::errc::bad_file_descriptor, under_way() == 0);
  });
}

// Those who lose leave the descriptor to the others.
TEST_CASE("many selects on one descriptor and a channel are all served", "[conformance][net][descriptor][select]") {
  on_each_io([](findings& found) {
    foreign_pair ends(foreign_pair::socket);
    (void)::fcntl(ends.reader(), F_SETFL, O_NONBLOCK);
    constexpr int bytes = 40, numbers = 40, fibers = 8;
    ramie::channel<int> channel(0);
    std::atomic<int> read{0}, received{0};
    ramie::nursery n;
    for (int i = 0; i < fibers; ++i) {
      n.spawn([&] {
        ramie::selector s;
        bool more = true;
        s.add(ramie::on_readable(ends.reader(), [&] {
          char byte;
          if (::read(ends.reader(), &byte, 1) == 1) ++read;
        }));
        s.on_recv(channel, [&](std::optional<int> number) {
          more = number.has_value();
          received += more ? 1 : 0;
        });
        while (more) (void)s.wait();
      });
    }
    for (int i = 0; i < bytes; ++i) {
      ends.put();
      (void)channel.send(i);
    }
    while (read != bytes) ramie::yield();
    channel.close();
    n.join();
    EXPECT(found, read == bytes, received == numbers, under_way() == 0);
  });
}

// f(ends) on a plain thread, for a pipe and for sockets: afterwards no descriptor is left open.
template <class F>
void on_a_thread(F f) {
  for (const auto kind : {foreign_pair::pipe, foreign_pair::socket}) {
    foreign_pair ends(kind);
    const auto before = test::open_descriptors();
    f(ends);
    CHECK(test::open_descriptors() == before);
  }
}

// f() on a thread of its own; then(), which is to end it, when it has begun to wait for a descriptor.
template <class F, class Then>
void while_it_waits(F f, Then then) {
  const auto before = test::open_descriptors();
  std::thread waits(f);
  test::until([&] { return test::open_descriptors() > before; });
  then();
  waits.join();
}

TEST_CASE("a select on a plain thread waits for a descriptor beside other things",
          "[conformance][net][descriptor][select]") {
  on_a_thread([](foreign_pair& ends) {
    ramie::channel<int> numbers(1);
    std::string won;
    const auto select_once = [&] {
      ramie::select(ramie::on_readable(ends.reader(), [&](readiness what) { won = to_string(what); }),
                    ramie::on_recv(numbers, [&](std::optional<int> n) { won = std::to_string(*n); }));
    };
    ends.put();
    select_once();
    CHECK(won == "ready");
    ends.take();
    while_it_waits(select_once, [&] { ends.put(); });
    CHECK(won == "ready");
    ends.take();
    while_it_waits(select_once, [&] { (void)numbers.send(7); });
    CHECK(won == "7");
    ends.fill();
    while_it_waits([&] { ramie::select(ramie::on_writable(ends.writer(), [&] { won = "room"; })); },
                   [&] { ends.drain(); });
    CHECK(won == "room");
    foreign_pair parted(foreign_pair::pipe);
    while_it_waits(
        [&] { ramie::select(ramie::on_readable(parted.reader(), [&](readiness what) { won = to_string(what); })); },
        [&] { parted.close_writer(); });
    CHECK(won == "hung up");
  });
}

TEST_CASE("a select on a plain thread that ends by time or an error leaves nothing behind",
          "[conformance][net][descriptor][select]") {
  on_a_thread([](foreign_pair& ends) {
    std::string won;
    const auto readable = [&] { return ramie::on_readable(ends.reader(), [&] { won = "readable"; }); };
    ramie::select(readable(), readable(), ramie::on_timeout(1ms, [&] { won = "time"; }));
    CHECK(won == "time");
    ramie::select(readable(), ramie::otherwise([&] { won = "otherwise"; }));
    CHECK(won == "otherwise");
    CHECK(error_of([] { ramie::select(ramie::on_readable(-1, [] {})); }) == std::errc::bad_file_descriptor);
    CHECK(error_of([&] { ramie::select(readable(), ramie::on_readable(1'000'000, [] {})); }) ==
          std::errc::bad_file_descriptor);
    CHECK(error_of([&] {
            const test::no_descriptors full;
            ramie::select(readable());
          }) == std::errc::too_many_files_open);
  });
}

// The waits put it into two epoll sets more, and Linux nests them five deep.
TEST_CASE("a select on a plain thread that the system refuses says what to do", "[conformance][net][descriptor][select]") {
  on_a_thread([](foreign_pair& ends) {
    std::vector<ramie::platform::unique_fd> sets;
    for (int inner = ends.reader(); sets.size() < 4; inner = sets.back().get()) {
      sets.emplace_back(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1");
      epoll_event event{};
      event.events = EPOLLIN;
      REQUIRE(::epoll_ctl(sets.back().get(), EPOLL_CTL_ADD, inner, &event) == 0);
    }
    std::string text;
    try {
      ramie::select(ramie::on_readable(sets.back().get(), [] {}), ramie::on_timeout(10s, [] {}));
    } catch (const std::system_error& e) {
      text = e.what();
    }
    CHECK(text.starts_with("ramie: on_readable on a plain thread ("));
    CHECK(text.find("wait_readable and fibers have no such limit") != std::string::npos);
    ends.put();
    CHECK(ramie::wait_readable(sets.back().get(), 10s) == ramie::readiness::ready);
  });
}

// An epoll set takes a descriptor once: each wait must have one of its own. Those who find nothing left wait again.
TEST_CASE("plain threads and fibers select on one descriptor", "[conformance][net][descriptor][select]") {
  foreign_pair ends(foreign_pair::socket);
  (void)::fcntl(ends.reader(), F_SETFL, O_NONBLOCK);
  const auto before = test::open_descriptors();
  constexpr int bytes = 100;
  std::atomic<int> read{0};
  ramie::channel<int> stop(0);
  const auto take_bytes = [&] {
    ramie::selector s;
    bool more = true;
    s.add(ramie::on_readable(ends.reader(), [&] {
      char byte;
      if (::read(ends.reader(), &byte, 1) == 1) ++read;
    }));
    s.on_recv(stop, [&](std::optional<int>) { more = false; });
    while (more) (void)s.wait();
  };
  {
    std::jthread first(take_bytes), second(take_bytes), third(take_bytes);
    ramie::run([&] {
      ramie::nursery n;
      n.spawn(take_bytes);
      for (int i = 1; i <= bytes; ++i) {
        ends.put();
        test::yield_until([&] { return read == i; });
      }
      stop.close();
    });
  }
  CHECK(read == bytes);
  CHECK(test::open_descriptors() == before);
}

}  // namespace conformance_net_descriptor
