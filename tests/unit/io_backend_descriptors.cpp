// SPDX-License-Identifier: BSL-1.0
// What the mechanisms do with descriptors of every kind: sockets, connections, pipes, regular files; peers that are gone.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include <support/io_backend.hpp>
#include <support/test.hpp>

namespace unit_io_backend_descriptors {

using ramie::platform::io_code;
using ramie::platform::io_mechanism;
using ramie::platform::io_operation;
using test::on_each_backend;
using test::owned_fd;
using test::receive;
using test::send;
using test::tested_backend;
using test::waiting_receive;

TEST_CASE("those who wait for one descriptor are served, each in its direction", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    const auto ends = b.pair();
    const owned_fd &here = ends[0], &there = ends[1];
    std::vector<char> much(4 << 20, 'x'), arrived(much.size());
    char one = 0, other = 0;
    auto first = receive(here, &one, 1), second = receive(here, &other, 1);
    b->submit(first);
    b->submit(second);
    std::size_t sent = 0;
    auto out = send(here, much.data(), much.size());  // more than fits: the same descriptor, the other direction
    b->submit(out);
    CHECK(b.take_ready() <= 1);
    REQUIRE(::send(there.fd(), "ab", 2, 0) == 2);
    b.wait_for(first);
    b.wait_for(second);
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
      b.wait_for(in);
      REQUIRE(in.result > 0);
      came += static_cast<std::size_t>(in.result);
    }
    note_and_forget();
    if (sent != much.size()) b.wait_for(out);
    CHECK(arrived == much);
  });
}

TEST_CASE("connections are made, accepted and refused", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    owned_fd listener = b.adapted(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
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
    CHECK(b.take_ready() == 0);

    owned_fd client = b.adapted(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    io_operation connect;
    connect.code = io_code::connect;
    connect.fd = client.fd();
    connect.memory = &where;
    connect.count = sizeof where;
    b->submit(connect);
    b.wait_for(connect);
    b.wait_for(accept);
    CHECK(connect.result == 0);
    REQUIRE(accept.result >= 0);
    const owned_fd server(accept.result);
    CHECK(who.sin_family == AF_INET);

    listener.close();
    owned_fd late = b.adapted(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    connect.fd = late.fd();
    b.forget();
    b->submit(connect);
    b.wait_for(connect);
    CHECK(connect.result == -ECONNREFUSED);
  });
}

TEST_CASE("a peer that is gone ends in a result, never in a signal", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    waiting_receive come(b);
    come.there().close();
    b.wait_for(come.op);
    CHECK(come.op.result == 0);
    auto go = send(come.here(), "x", 1);
    b->submit(go);
    b.wait_for(go);
    CHECK(go.result == -EPIPE);
    auto nowhere = receive(owned_fd(), come.buffer, 1);
    b->submit(nowhere);
    b.wait_for(nowhere);
    CHECK(nowhere.result == -EBADF);
  });
}

TEST_CASE("a hang-up ends a read that waits, although nothing is to be read", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    int ends[2];
    REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
    owned_fd from = b.adapted(ends[0]), to(ends[1]);
    char buffer[16];
    io_operation come;
    come.code = io_code::read;
    come.fd = from.fd();
    come.memory = buffer;
    come.count = sizeof buffer;
    b->submit(come);
    CHECK(b.take_ready() == 0);
    to.close();  // poll says POLLHUP, without POLLIN
    b.wait_for(come);
    CHECK(come.result == 0);
  });
}

TEST_CASE("readiness can be waited for", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    auto [here, there] = b.pair();
    io_operation readable, writable;
    readable.code = writable.code = io_code::ready;
    readable.fd = writable.fd = here.fd();
    readable.flags = POLLIN;
    writable.flags = POLLOUT;
    b->submit(readable);
    b->submit(writable);
    b.wait_for(writable);
    CHECK(writable.result == POLLOUT);
    CHECK(b.take_ready() == 0);
    REQUIRE(::send(there.fd(), "x", 1, 0) == 1);
    b.wait_for(readable);
    CHECK((readable.result & POLLIN) != 0);
  });
}

TEST_CASE("regular files are read at an offset, or left to threads", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    char name[] = "/tmp/ramie-io-XXXXXX";
    const owned_fd f(::mkostemp(name, O_CLOEXEC));
    REQUIRE(f.fd() >= 0);
    REQUIRE(::unlink(name) == 0);
    REQUIRE(::pwrite(f.fd(), "0123456789", 10, 0) == 10);
    char buffer[4] = {};
    auto op = receive(f, buffer, 3);
    op.code = io_code::read;
    op.offset = 4;
    b->submit(op);
    b.wait_for(op);
    const bool takes_files = b->mechanism() == io_mechanism::io_uring;
    if (takes_files || op.result != -EOPNOTSUPP) {  // what is in memory can be had without waiting
      CHECK(op.result == 3);
      CHECK(std::string(buffer) == "456");
    }
    io_operation sync;
    sync.code = io_code::sync;
    sync.fd = f.fd();
    b->submit(sync);
    b.wait_for(sync);
    CHECK(sync.result == (takes_files ? 0 : -EOPNOTSUPP));
  });
}

TEST_CASE("descriptors of the other kind do as well", "[unit][io]") {
  if (test::mechanisms().front() != io_mechanism::io_uring) LEFT_OUT("no io_uring here");
  on_each_backend([](tested_backend& b) {
    if (b->mechanism() != io_mechanism::io_uring) return;  // the others can't
    auto [here, there] = b.pair();
    REQUIRE(::fcntl(here.fd(), F_SETFL, O_NONBLOCK) == 0);
    char buffer[4] = {};
    auto come = receive(here, buffer, sizeof buffer);
    b->submit(come);
    CHECK(b.take_ready() == 0);
    CHECK(b.take_ready() == 0);
    REQUIRE(::send(there.fd(), "late", 4, 0) == 4);
    b.wait_for(come);
    CHECK(come.result == 4);
    b.forget();
    b->submit(come);
    CHECK(b.take_ready() == 0);
    b->cancel(come);
    b.wait_for(come);
    CHECK(come.result == -ECANCELED);
  });
}

}  // namespace unit_io_backend_descriptors
