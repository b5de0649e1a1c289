// SPDX-License-Identifier: BSL-1.0
// A backend of platform/ alone, without a runtime: for tests of the contract in io_backend.hpp.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include <ramie/platform/io_backend.hpp>
#include <support/test.hpp>

namespace test {

// Closed with its owner, or before.
class owned_fd {
 public:
  explicit owned_fd(int fd = -1) : fd_(fd) {}
  owned_fd(owned_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  owned_fd& operator=(owned_fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~owned_fd() { close(); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }
  [[nodiscard]] int fd() const { return fd_; }

 private:
  int fd_;
};

// A backend, descriptors with the flags that it wants, and the operations that it has handed out.
class tested_backend {
 public:
  explicit tested_backend(ramie::platform::io_mechanism which)
      : backend_(ramie::platform::make_io_backend(which, why_not_)) {}

  ramie::platform::io_backend& operator*() { return *backend_; }
  ramie::platform::io_backend* operator->() { return backend_.get(); }

  // Takes it over, and makes it non-blocking or blocking as the backend wants it.
  [[nodiscard]] owned_fd adapted(int fd) const {
    REQUIRE(fd >= 0);
    const int flags = ::fcntl(fd, F_GETFL);
    REQUIRE(::fcntl(fd, F_SETFL, backend_->wants_non_blocking() ? flags | O_NONBLOCK : flags & ~O_NONBLOCK) == 0);
    return owned_fd(fd);
  }
  // Two sockets that are connected to each other.
  [[nodiscard]] std::array<owned_fd, 2> pair() const {
    int ends[2];
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) == 0);
    return {adapted(ends[0]), adapted(ends[1])};
  }

  // Takes what is handed out without waiting; how many.
  std::size_t take_ready() {
    std::array<ramie::platform::io_operation*, 64> out{};
    const std::size_t count = backend_->poll(out);
    taken_.insert(taken_.end(), out.begin(), out.begin() + count);
    return count;
  }
  // Takes what is handed out until this one is among it.
  void wait_for(ramie::platform::io_operation& op) {
    std::array<ramie::platform::io_operation*, 64> out{};
    const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!has(op)) {
      const std::size_t count = backend_->wait(out, patience);  // 0: a wake for an earlier wait
      taken_.insert(taken_.end(), out.begin(), out.begin() + count);
      REQUIRE(std::chrono::steady_clock::now() < patience);
    }
  }
  // How often it has been handed out.
  [[nodiscard]] int times(const ramie::platform::io_operation& op) const {
    return static_cast<int>(std::count(taken_.begin(), taken_.end(), &op));
  }
  [[nodiscard]] bool has(const ramie::platform::io_operation& op) const { return times(op) != 0; }
  void forget() { taken_.clear(); }

 private:
  std::string why_not_;
  std::unique_ptr<ramie::platform::io_backend> backend_;
  std::vector<ramie::platform::io_operation*> taken_;
};

[[nodiscard]] inline ramie::platform::io_operation receive(const owned_fd& from, void* into, std::size_t count) {
  ramie::platform::io_operation op;
  op.code = ramie::platform::io_code::receive;
  op.fd = from.fd();
  op.memory = into;
  op.count = static_cast<std::uint32_t>(count);
  return op;
}
[[nodiscard]] inline ramie::platform::io_operation send(const owned_fd& to, const void* from, std::size_t count) {
  auto op = receive(to, const_cast<void*>(from), count);
  op.code = ramie::platform::io_code::send;
  return op;
}

// Two sockets, and a receive that waits at the first of them.
class waiting_receive {
 public:
  explicit waiting_receive(tested_backend& b) : ends_(b.pair()), op(receive(ends_[0], buffer, sizeof buffer)) {
    b->submit(op);
    CHECK(b.take_ready() == 0);
  }
  waiting_receive(const waiting_receive&) = delete;
  waiting_receive& operator=(const waiting_receive&) = delete;
  [[nodiscard]] owned_fd& here() { return ends_[0]; }
  [[nodiscard]] owned_fd& there() { return ends_[1]; }

 private:
  std::array<owned_fd, 2> ends_;

 public:
  char buffer[16] = {};
  ramie::platform::io_operation op;
};

// Those that this machine grants. It may forbid io_uring; the others must be there.
[[nodiscard]] inline std::vector<ramie::platform::io_mechanism> mechanisms() {
  using ramie::platform::io_mechanism;
  std::vector<io_mechanism> all;
  for (const auto which : {io_mechanism::io_uring, io_mechanism::epoll, io_mechanism::poll}) {
    try {
      std::string why_not;
      (void)ramie::platform::make_io_backend(which, why_not);
      all.push_back(which);
    } catch (const std::system_error& e) {
      WARN(to_string(which) << " is not tested here: " << e.what());
      REQUIRE(which == io_mechanism::io_uring);
    }
  }
  return all;
}

template <class F>
void on_each_backend(F f) {
  for (const auto which : mechanisms()) {
    INFO(to_string(which));
    tested_backend b(which);
    CHECK(b->mechanism() == which);
    f(b);
  }
}

}  // namespace test
