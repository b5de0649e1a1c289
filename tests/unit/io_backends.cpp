// SPDX-License-Identifier: BSL-1.0
// The contract of io_backend.hpp, for every mechanism there is.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/io_backend.hpp>
#include <support/allocations.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace unit_io_backends {

using namespace std::chrono_literals;
using ramie::platform::io_backend;
using ramie::platform::io_code;
using ramie::platform::io_mechanism;
using ramie::platform::io_operation;
using ramie::platform::make_io_backend;

class file {
 public:
  explicit file(int fd = -1) : fd_(fd) {}
  file(file&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  file& operator=(file&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~file() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

// A backend with descriptors as it wants them, and what it has handed out.
class bench {
 public:
  explicit bench(io_mechanism which) : backend_(make_io_backend(which, why_not_)) {}

  io_backend& operator*() { return *backend_; }
  io_backend* operator->() { return backend_.get(); }

  [[nodiscard]] file wish(int fd) const {
    REQUIRE(fd >= 0);
    const int flags = ::fcntl(fd, F_GETFL);
    REQUIRE(::fcntl(fd, F_SETFL, backend_->wants_non_blocking() ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0);
    return file(fd);
  }
  [[nodiscard]] std::array<file, 2> pair() const {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {wish(ends[0]), wish(ends[1])};
  }

  // What there is now.
  std::size_t look() {
    std::array<io_operation*, 64> out{};
    const std::size_t count = backend_->poll(out);
    for (std::size_t i = 0; i < count; ++i) taken_.push_back(out[i]);
    return count;
  }
  // Until it has been handed out. Everything that comes before is kept.
  void finish(io_operation& op) {
    std::array<io_operation*, 64> out{};
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (!has(op)) {
      const std::size_t count = backend_->wait(out, patience);  // 0: a wake for an earlier wait
      for (std::size_t i = 0; i < count; ++i) taken_.push_back(out[i]);
      REQUIRE(std::chrono::steady_clock::now() < patience);
    }
  }
  [[nodiscard]] int times(const io_operation& op) const {
    return static_cast<int>(std::count(taken_.begin(), taken_.end(), &op));
  }
  [[nodiscard]] bool has(const io_operation& op) const { return times(op) != 0; }
  void forget() { taken_.clear(); }

 private:
  std::string why_not_;
  std::unique_ptr<io_backend> backend_;
  std::vector<io_operation*> taken_;
};

io_operation receive(const file& from, void* into, std::size_t count) {
  io_operation op;
  op.code = io_code::receive;
  op.fd = from.fd();
  op.memory = into;
  op.count = static_cast<std::uint32_t>(count);
  return op;
}
io_operation send(const file& to, const void* from, std::size_t count) {
  io_operation op = receive(to, const_cast<void*>(from), count);
  op.code = io_code::send;
  return op;
}

// The machine may forbid io_uring; the rest must be there.
std::vector<io_mechanism> mechanisms() {
  std::vector<io_mechanism> all;
  for (const auto which : {io_mechanism::io_uring, io_mechanism::epoll, io_mechanism::poll}) {
    try {
      std::string why_not;
      (void)make_io_backend(which, why_not);
      all.push_back(which);
    } catch (const std::system_error& e) {
      WARN(to_string(which) << " is not tested here: " << e.what());
      REQUIRE(which == io_mechanism::io_uring);
    }
  }
  return all;
}

template <class F>
void on_each(F f) {
  for (const auto which : mechanisms()) {
    INFO(to_string(which));
    bench b(which);
    CHECK(b->mechanism() == which);
    f(b);
  }
}

TEST_CASE("an operation is handed out once, with what the system call returned", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    CHECK(b.look() == 0);
    auto go = send(there, "ramie", 5);
    b->submit(go);
    b.finish(come);
    b.finish(go);
    CHECK(come.result == 5);
    CHECK(go.result == 5);
    CHECK(std::string(buffer) == "ramie");
    CHECK(b.look() == 0);
    CHECK(b.times(come) == 1);
    CHECK(b.times(go) == 1);
  });
}

TEST_CASE("a cancelled operation is handed out all the same, and its memory left alone", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    CHECK(b.look() == 0);
    b->cancel(come);
    b.finish(come);
    CHECK(come.result == -ECANCELED);
    REQUIRE(::send(there.fd(), "late", 4, 0) == 4);
    CHECK(b.look() == 0);
    CHECK(buffer[0] == 0);
    auto next = receive(here, buffer, sizeof buffer);  // what was not received then is there now
    b->submit(next);
    b.finish(next);
    CHECK(next.result == 4);
  });
}

TEST_CASE("a cancellation that comes too late changes nothing", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    REQUIRE(::send(there.fd(), "first", 5, 0) == 5);
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    b->flush();
    b->cancel(come);
    b.finish(come);
    CHECK(come.result == 5);
    CHECK(b.look() == 0);
    CHECK(b.times(come) == 1);
  });
}

TEST_CASE("those who wait for one descriptor are served, each in its direction", "[unit][io]") {
  on_each([](bench& b) {
    const auto ends = b.pair();
    const file &here = ends[0], &there = ends[1];
    std::vector<char> much(4 << 20, 'x'), arrived(much.size());
    char one = 0, other = 0;
    auto first = receive(here, &one, 1), second = receive(here, &other, 1);
    b->submit(first);
    b->submit(second);
    std::size_t sent = 0;
    auto out = send(here, much.data(), much.size());  // more than fits: the same descriptor, the other direction
    b->submit(out);
    CHECK(b.look() <= 1);
    REQUIRE(::send(there.fd(), "ab", 2, 0) == 2);
    b.finish(first);
    b.finish(second);
    CHECK(one + other == 'a' + 'b');
    const auto note_and_forget = [&] {
      const bool went = b.has(out);
      b.forget();
      if (!went) return;
      REQUIRE(out.result > 0);
      sent += static_cast<std::size_t>(out.result);
      if (sent == much.size()) return;
      out = send(here, much.data() + sent, much.size() - sent);
      b->submit(out);
    };
    for (std::size_t came = 0; came < much.size();) {
      note_and_forget();
      auto in = receive(there, arrived.data() + came, arrived.size() - came);
      b->submit(in);
      b.finish(in);
      REQUIRE(in.result > 0);
      came += static_cast<std::size_t>(in.result);
    }
    note_and_forget();
    if (sent != much.size()) b.finish(out);
    CHECK(arrived == much);
  });
}

TEST_CASE("connections are made, accepted and refused", "[unit][io]") {
  on_each([](bench& b) {
    file listener = b.wish(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    REQUIRE(::bind(listener.fd(), address, size) == 0);
    REQUIRE(::getsockname(listener.fd(), address, &size) == 0);
    REQUIRE(::listen(listener.fd(), 16) == 0);

    io_operation accept;
    accept.code = io_code::accept;
    accept.fd = listener.fd();
    sockaddr_in who{};
    accept.memory = &who;
    accept.count = sizeof who;
    accept.flags = SOCK_CLOEXEC;
    b->submit(accept);
    CHECK(b.look() == 0);

    file client = b.wish(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    io_operation connect;
    connect.code = io_code::connect;
    connect.fd = client.fd();
    connect.memory = &where;
    connect.count = sizeof where;
    b->submit(connect);
    b.finish(connect);
    b.finish(accept);
    CHECK(connect.result == 0);
    REQUIRE(accept.result >= 0);
    const file server(accept.result);
    CHECK(who.sin_family == AF_INET);

    listener.close();
    file late = b.wish(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect.fd = late.fd();
    b.forget();
    b->submit(connect);
    b.finish(connect);
    CHECK(connect.result == -ECONNREFUSED);
  });
}

TEST_CASE("a peer that is gone ends in a result, never in a signal", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char buffer[16];
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    CHECK(b.look() == 0);
    there.close();
    b.finish(come);
    CHECK(come.result == 0);
    auto go = send(here, "x", 1);
    b->submit(go);
    b.finish(go);
    CHECK(go.result == -EPIPE);
    auto nowhere = receive(file(), buffer, 1);
    b->submit(nowhere);
    b.finish(nowhere);
    CHECK(nowhere.result == -EBADF);
  });
}

TEST_CASE("a hang-up ends a read that waits, although nothing is to be read", "[unit][io]") {
  on_each([](bench& b) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    file from = b.wish(ends[0]), to(ends[1]);
    char buffer[16];
    io_operation come;
    come.code = io_code::read;
    come.fd = from.fd();
    come.memory = buffer;
    come.count = sizeof buffer;
    b->submit(come);
    CHECK(b.look() == 0);
    to.close();  // poll says POLLHUP, without POLLIN
    b.finish(come);
    CHECK(come.result == 0);
  });
}

TEST_CASE("readiness can be waited for", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    io_operation readable, writable;
    readable.code = writable.code = io_code::ready;
    readable.fd = writable.fd = here.fd();
    readable.flags = POLLIN;
    writable.flags = POLLOUT;
    b->submit(readable);
    b->submit(writable);
    b.finish(writable);
    CHECK(writable.result == POLLOUT);
    CHECK(b.look() == 0);
    REQUIRE(::send(there.fd(), "x", 1, 0) == 1);
    b.finish(readable);
    CHECK((readable.result & POLLIN) != 0);
  });
}

TEST_CASE("regular files are read at an offset, or left to threads", "[unit][io]") {
  on_each([](bench& b) {
    char name[] = "/tmp/ramie-io-XXXXXX";
    const file f(::mkostemp(name, O_CLOEXEC));
    REQUIRE(f.fd() >= 0);
    REQUIRE(::unlink(name) == 0);
    REQUIRE(::pwrite(f.fd(), "0123456789", 10, 0) == 10);
    char buffer[4] = {};
    auto op = receive(f, buffer, 3);
    op.code = io_code::read;
    op.offset = 4;
    b->submit(op);
    b.finish(op);
    const bool takes_files = b->mechanism() == io_mechanism::io_uring;
    if (takes_files || op.result != -EOPNOTSUPP) {  // what is in memory can be had without waiting
      CHECK(op.result == 3);
      CHECK(std::string(buffer) == "456");
    }
    io_operation sync;
    sync.code = io_code::sync;
    sync.fd = f.fd();
    b->submit(sync);
    b.finish(sync);
    CHECK(sync.result == (takes_files ? 0 : -EOPNOTSUPP));
  });
}

TEST_CASE("wake ends the wait of this moment or the next one, a time ends it too", "[unit][io]") {
  on_each([](bench& b) {
    std::array<io_operation*, 4> out{};
    b->wake();
    b->wake();
    CHECK(b->wait(out, io_backend::never) == 0);
    const auto due = std::chrono::steady_clock::now() + 2ms;
    while (std::chrono::steady_clock::now() < due) CHECK(b->wait(out, due) == 0);  // two wakes may have counted as two
    for (int i = 0; i < 100; ++i) {
      std::thread other([&b] { b->wake(); });
      CHECK(b->wait(out, io_backend::never) == 0);
      other.join();
    }
    auto [here, there] = b.pair();
    char c = 0;
    auto come = receive(here, &c, 1);
    std::thread other([&b, &come] {  // submitted and completed while somebody sleeps
      b->submit(come);
      b->flush();
      b->cancel(come);
      b->flush();
    });
    b.finish(come);
    other.join();
    CHECK(come.result == -ECANCELED);
  });
}

TEST_CASE("a wake is for who sleeps, not for who only looks", "[unit][io]") {
  on_each([](bench& b) {
    const int rounds = test::scaled(2000, 300);
    std::atomic<int> wakes{0}, waits{0};
    std::atomic<bool> over{false};
    std::thread looker([&] {
      std::array<io_operation*, 4> out{};
      while (!over) (void)b->poll(out);
    });
    std::thread sleeper([&] {
      std::array<io_operation*, 4> out{};
      for (int i = 0; i < rounds; ++i) {
        while (wakes <= i) (void)b->wait(out, io_backend::never);
        ++waits;
      }
    });
    for (int i = 0; i < rounds; ++i) {
      wakes = i + 1;
      b->wake();
      while (waits <= i) std::this_thread::yield();  // a wake that is lost is a hang
    }
    sleeper.join();
    over = true;
    looker.join();
    CHECK(waits == rounds);
  });
}

// The same without leaving it to chance: the wake, and the look of somebody else, come when the sleeper has let go of the
// lock and is about to sleep. If the look took what the wake has left in the ring, nothing would end that sleep.
TEST_CASE("who looks takes nothing from who sleeps", "[unit][io]") {
  if (mechanisms().front() != io_mechanism::io_uring) LEFT_OUT("no io_uring here: nothing could be taken");
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
  static io_backend* backend = nullptr;
  static int looks = 0;
  const struct all_well {
    ~all_well() { faults::told = nullptr; }
  } afterwards;
  on_each([](bench& b) {
    if (b->mechanism() != io_mechanism::io_uring) return;  // the others have nothing that could be taken
    for (int round = 1; round <= 3; ++round) {
      backend = &*b;
      faults::told = [](fault at) noexcept {
        if (at != fault::io_sleep || backend == nullptr) return;
        io_backend& it = *std::exchange(backend, nullptr);
        std::array<io_operation*, 4> out{};
        it.wake();
        if (it.poll(out) == 0) ++looks;
      };
      std::array<io_operation*, 4> out{};
      const auto patience = std::chrono::steady_clock::now() + 5s;
      CHECK(b->wait(out, patience) == 0);
      CHECK(looks == round);
      REQUIRE(std::chrono::steady_clock::now() < patience);
    }
  });
}

// The cancellation waits for room, and meanwhile the operation has ended: nothing is left to be cancelled.
TEST_CASE("a cancellation that had no room is forgotten when its operation has ended", "[unit][io]") {
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
  const struct all_well {
    ~all_well() { faults::plan_for(fault::submission, 0, 0); }
  } afterwards;
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    CHECK(b.look() == 0);
    faults::plan_for(fault::submission, 1, faults::for_good);
    b->cancel(come);
    REQUIRE(::send(there.fd(), "word", 4, 0) == 4);
    b.finish(come);
    CHECK((come.result == 4 || come.result == -ECANCELED));
    if (come.result != 4) REQUIRE(::recv(here.fd(), buffer, sizeof buffer, 0) == 4);
    b.forget();
    come = receive(here, buffer, sizeof buffer);  // another one in the same place, for which there is no room either
    b->submit(come);
    faults::plan_for(fault::submission, 0, 0);
    REQUIRE(::send(there.fd(), "next", 4, 0) == 4);
    b.finish(come);
    CHECK(come.result == 4);
    CHECK(b->under_way() == 0);
  });
}

TEST_CASE("more operations than any queue holds are handed out, each once", "[unit][io]") {
  on_each([](bench& b) {
    constexpr std::size_t many = 6000;
    auto [here, there] = b.pair();
    std::vector<io_operation> all(many);
    std::vector<char> bytes(many);
    for (std::size_t i = 0; i < many; ++i) {
      if (i % 3 == 0) all[i] = receive(here, &bytes[i], 1);
      b->submit(all[i]);
    }
    for (std::size_t i = 0; i < many; i += 3) b->cancel(all[i]);
    std::set<const io_operation*> came;
    std::array<io_operation*, 64> out{};
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (came.size() < many) {
      const std::size_t count = b->wait(out, patience);
      REQUIRE(std::chrono::steady_clock::now() < patience);
      for (std::size_t i = 0; i < count; ++i) REQUIRE(came.insert(out[i]).second);
    }
    CHECK(b.look() == 0);
    bool right = true;
    for (std::size_t i = 0; i < many; ++i) right = right && all[i].result == (i % 3 == 0 ? -ECANCELED : 0);
    CHECK(right);
  });
}

TEST_CASE("an operation outlives the thread that submitted it", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char buffer[16] = {};
    auto come = receive(here, buffer, sizeof buffer);
    std::thread([&] {
      b->submit(come);
      b->flush();
    }).join();
    for (int i = 0; i < 3; ++i) CHECK(b.look() == 0);  // the kernel has cancelled it, which is nobody's business
    REQUIRE(::send(there.fd(), "late", 4, 0) == 4);
    b.finish(come);
    CHECK(come.result == 4);
  });
}

TEST_CASE("descriptors of the other kind do as well", "[unit][io]") {
  if (mechanisms().front() != io_mechanism::io_uring) LEFT_OUT("no io_uring here");
  on_each([](bench& b) {
    if (b->mechanism() != io_mechanism::io_uring) return;  // the others can't
    auto [here, there] = b.pair();
    REQUIRE(::fcntl(here.fd(), F_SETFL, O_NONBLOCK) == 0);
    char buffer[4] = {};
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    CHECK(b.look() == 0);
    CHECK(b.look() == 0);
    REQUIRE(::send(there.fd(), "late", 4, 0) == 4);
    b.finish(come);
    CHECK(come.result == 4);
    b.forget();
    b->submit(come);
    CHECK(b.look() == 0);
    b->cancel(come);
    b.finish(come);
    CHECK(come.result == -ECANCELED);
  });
}

TEST_CASE("an operation needs no memory once its descriptor is known", "[unit][io]") {
  on_each([](bench& b) {
    auto [here, there] = b.pair();
    char c = 0;
    std::array<io_operation*, 4> out{};
    auto come = receive(here, &c, 1), go = send(there, "x", 1);
    const auto round = [&] {
      b->submit(come);
      std::size_t count = b->poll(out);
      b->submit(go);
      while (count < 2) count += b->wait(out, io_backend::never);
    };
    round();
    const auto before = test::allocations();
    for (int i = 0; i < 10; ++i) round();
    const auto needed = test::allocations() - before;
    if (b->mechanism() != io_mechanism::poll) CHECK(needed == 0);  // poll copies what it watches
  });
}

// Pairs of sockets; every byte is the number of those before it, so a byte that is lost, doubled or out of turn shows.
class traffic {
 public:
  traffic(bench& b, std::uint64_t seed) : b_(b), random_(seed) {
    for (auto& l : lines_) {
      auto ends = b.pair();
      l.from = std::move(ends[0]);
      l.to = std::move(ends[1]);
    }
  }
  void run(int steps) {
    for (int i = 0; i < steps && right; ++i) {
      line& l = lines_[random_.below(std::size(lines_))];
      switch (random_.below(6)) {
        case 0:
        case 1: begin_receive(l); break;
        case 2:
        case 3: begin_send(l); break;
        case 4:
          if (l.receiving && random_.one_in(2)) b_->cancel(l.in);
          if (l.sending && random_.one_in(8)) b_->cancel(l.out);
          break;
        default: take(b_->poll(out_));
      }
    }
    for (auto& l : lines_) {
      if (l.receiving) b_->cancel(l.in);
      if (l.sending) b_->cancel(l.out);
    }
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (right && under_way_ > 0) {
      take(b_->wait(out_, patience));
      right = right && std::chrono::steady_clock::now() < patience;
    }
  }
  bool right = true;
  int cancelled = 0;
  std::size_t received = 0;

 private:
  struct line {
    file from, to;
    io_operation in, out;
    bool receiving = false, sending = false;
    std::size_t sent = 0, came = 0;
    std::array<unsigned char, 300> outgoing{}, incoming{};
  };

  void begin_receive(line& l) {
    if (std::exchange(l.receiving, true)) return;
    l.incoming.fill(0xee);
    l.in = receive(l.to, l.incoming.data(), 1 + random_.below(300));
    ++under_way_;
    b_->submit(l.in);
  }
  void begin_send(line& l) {
    if (std::exchange(l.sending, true)) return;
    for (std::size_t i = 0; i < l.outgoing.size(); ++i) l.outgoing[i] = static_cast<unsigned char>(l.sent + i);
    l.out = send(l.from, l.outgoing.data(), 1 + random_.below(300));
    ++under_way_;
    b_->submit(l.out);
  }
  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      --under_way_;
      const auto l = std::find_if(std::begin(lines_), std::end(lines_),
                                  [&](const line& each) { return &each.in == out_[i] || &each.out == out_[i]; });
      right = right && l != std::end(lines_) && end(*l, *out_[i]);
    }
  }
  // Whether that can be right.
  [[nodiscard]] bool end(line& l, const io_operation& op) {
    const bool in = &op == &l.in;
    if (!std::exchange(in ? l.receiving : l.sending, false)) return false;  // nobody waits for it
    if (op.result == -ECANCELED) ++cancelled;
    const std::size_t count = op.result > 0 ? static_cast<std::size_t>(op.result) : 0;
    if (op.result <= 0 && op.result != -ECANCELED) return false;
    if (!in) {
      l.sent += count;
      return count <= op.count;
    }
    for (std::size_t i = 0; i < l.incoming.size(); ++i) {
      const auto expected = i < count ? static_cast<unsigned char>(l.came + i) : 0xee;
      if (l.incoming[i] != expected) return false;
    }
    l.came += count;
    received += count;
    return true;
  }

  bench& b_;
  test::dice random_;
  line lines_[5];
  std::array<io_operation*, 7> out_{};
  int under_way_ = 0;
};

TEST_CASE("random operations lose no byte and are handed out once", "[unit][io]") {
  on_each([](bench& b) {
    int cancelled = 0;
    for (std::uint64_t seed = 1; seed <= (test::large() ? 200u : 5u); ++seed) {
      INFO("seed " << seed);
      traffic t(b, seed);
      t.run(test::scaled(5'000, 1'000));
      CHECK(t.right);
      CHECK(t.received > 0);
      CHECK(b.look() == 0);
      cancelled += t.cancelled;
    }
    CHECK(cancelled > 0);
  });
}

TEST_CASE("a backend that can't be had leaves no descriptor, an operation without memory is handed out", "[unit][io]") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  for (const auto which : mechanisms()) {
    INFO(to_string(which));
    std::string why_not;
    const auto before = open_files();
    rlimit whole{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &whole) == 0);
    const file next(::dup(0));
    // UBSan looks behind a vptr it does not know yet through a pipe, and there will be no descriptor for one.
    REQUIRE(std::system_error(EMFILE, std::system_category(), "").code().value() == EMFILE);
    int refusals = 0;
    for (rlim_t more = 0; more < 3; ++more) {  // not even the first descriptor, not the second …
      const rlimit tight{static_cast<rlim_t>(next.fd()) + 1 + more, whole.rlim_max};
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
      try {
        (void)make_io_backend(which, why_not);
      } catch (const std::system_error& e) {
        refusals += e.code().value() == EMFILE;
      }
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &whole) == 0);
    }
    CHECK(refusals == (which == io_mechanism::poll ? 1 : 2));
    CHECK(open_files() == before + 1);

    bench b(which);
    auto [here, there] = b.pair();
    char c = 0;
    auto come = receive(here, &c, 1);
    test::fail_allocations_from(1);
    b->submit(come);
    test::fail_allocations_from(0);
    if (which == io_mechanism::io_uring) b->cancel(come);
    b.finish(come);
    CHECK(come.result == (which == io_mechanism::io_uring ? -ECANCELED : -ENOMEM));
  }
}

TEST_CASE("what the machine refuses is passed over", "[unit][io]") {
  namespace faults = ramie::platform::faults;
  using ramie::platform::fault;
  struct all_well {
    ~all_well() {
      for (const auto each : {fault::io_uring, fault::epoll}) faults::plan_for(each, 0, 0);
    }
  } const afterwards;
  std::string why_not;
  faults::plan_for(fault::io_uring, 1, faults::for_good);
  CHECK(make_io_backend(io_mechanism::automatic, why_not)->mechanism() == io_mechanism::epoll);
  CHECK(why_not.find("io_uring") != std::string::npos);
  CHECK(why_not.find("not permitted") != std::string::npos);
  CHECK_THROWS_AS(make_io_backend(io_mechanism::io_uring, why_not), std::system_error);
  faults::plan_for(fault::epoll, 1, faults::for_good);
  CHECK(make_io_backend(io_mechanism::automatic, why_not)->mechanism() == io_mechanism::poll);
  CHECK(why_not.find("epoll") != std::string::npos);
}

TEST_CASE("the choice of a mechanism can be forced, and says what it passed over", "[unit][io]") {
  std::string why_not = "old";
  const auto best = make_io_backend(io_mechanism::automatic, why_not);
  CHECK(best->mechanism() == mechanisms().front());
  CHECK(why_not.empty() == (best->mechanism() == io_mechanism::io_uring));
  ::setenv("RAMIE_IO_BACKEND", "poll", 1);
  CHECK(make_io_backend(io_mechanism::automatic, why_not)->mechanism() == io_mechanism::poll);
  CHECK(make_io_backend(io_mechanism::epoll, why_not)->mechanism() == io_mechanism::epoll);  // an option is stronger
  ::setenv("RAMIE_IO_BACKEND", "smoke signals", 1);
  CHECK_THROWS_AS(make_io_backend(io_mechanism::automatic, why_not), std::system_error);
  ::unsetenv("RAMIE_IO_BACKEND");
}

}  // namespace unit_io_backends
