// SPDX-License-Identifier: BSL-1.0
// An echo server with nothing between it and epoll. Each worker has an epoll and connections of its own.
#include <sys/epoll.h>

#include <compare/server.hpp>

namespace {

using namespace compare;

// A peer that does not take it is waited for: nobody here has more than one message under way.
bool send_all(int fd, const char* data, std::size_t count) {
  while (count > 0) {
    const ssize_t sent = ::send(fd, data, count, MSG_NOSIGNAL);
    if (sent < 0 && errno != EAGAIN) return false;
    if (sent < 0) {
      pollfd room{fd, POLLOUT, 0};
      ::poll(&room, 1, -1);
      continue;
    }
    data += sent;
    count -= static_cast<std::size_t>(sent);
  }
  return true;
}

void echo(int fd) {
  char data[4096];
  const ssize_t got = ::recv(fd, data, sizeof data, 0);
  if (got < 0 && errno == EAGAIN) return;
  if (got <= 0 || !send_all(fd, data, static_cast<std::size_t>(got))) ::close(fd);
}

void loop(int epoll) {
  epoll_event ready[1024];
  for (;;) {
    const int count = ::epoll_wait(epoll, ready, 1024, -1);
    for (int i = 0; i < count; ++i) echo(ready[i].data.fd);
  }
}

result serve(unsigned workers, const sizes&) {
  std::vector<int> epolls;
  for (unsigned w = 0; w < workers; ++w) {
    epolls.push_back(checked(::epoll_create1(EPOLL_CLOEXEC), "epoll_create1"));
    std::thread(loop, epolls.back()).detach();
  }
  accept_until_stdin_closes(SOCK_NONBLOCK, [&](int fd, unsigned number) {
    epoll_event e{};
    e.events = EPOLLIN;
    e.data.fd = fd;
    checked(::epoll_ctl(epolls[number % workers], EPOLL_CTL_ADD, fd, &e), "epoll_ctl");
  });
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {{"echo", 2, serve}};
  return run_program(argc, argv, all);
}
