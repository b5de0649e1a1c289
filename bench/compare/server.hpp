// SPDX-License-Identifier: BSL-1.0
// What the servers of bench/compare share. `PROGRAM echo WORKERS` listens on a port of the loopback, prints it, and
// serves until its standard input is closed; tools/lib/bench/serve.py starts it and the load.
#pragma once

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>

#include <compare/program.hpp>

namespace compare {

inline int checked(int result, const char* what) {
  if (result < 0) fail(std::string(what) + ": " + std::strerror(errno));
  return result;
}

inline void announce(unsigned port) {
  std::printf("%u\n", port);
  std::fflush(stdout);
}

inline void send_at_once(int connection) {
  const int on = 1;
  checked(::setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
}

// Nothing is unwound: the process ends.
[[noreturn]] inline void serve_until_stdin_closes() {
  char byte;
  while (::read(STDIN_FILENO, &byte, 1) > 0) {
  }
  std::_Exit(0);
}

inline int listen_on_loopback() {
  const int listener = checked(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  sockaddr_in a{};
  a.sin_family = AF_INET;
  a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof a;
  checked(::bind(listener, reinterpret_cast<sockaddr*>(&a), length), "bind");
  checked(::listen(listener, 4096), "listen");
  checked(::getsockname(listener, reinterpret_cast<sockaddr*>(&a), &length), "getsockname");
  announce(ntohs(a.sin_port));
  return listener;
}

// For loops that only serve: the calling thread accepts, and deals the connections out by give(descriptor, number).
// flags: as of accept4.
[[noreturn]] inline void accept_until_stdin_closes(int flags, auto&& give) {
  const int listener = listen_on_loopback();
  for (unsigned number = 0;; ++number) {
    pollfd watched[2] = {{STDIN_FILENO, POLLIN, 0}, {listener, POLLIN, 0}};
    checked(::poll(watched, 2, -1), "poll");
    if (watched[0].revents != 0) std::_Exit(0);
    const int connection = checked(::accept4(listener, nullptr, nullptr, flags | SOCK_CLOEXEC), "accept");
    send_at_once(connection);
    give(connection, number);
  }
}

}  // namespace compare
