// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <ramie/platform/io_backend.hpp>
#include <support/test.hpp>

namespace test {

// An operation under way: a read from a pipe into which nothing has been written yet.
class pending_read {
 public:
  explicit pending_read(ramie::platform::io_backend& on) : on_(on) {
    REQUIRE(::pipe2(ends_, O_CLOEXEC | O_NONBLOCK) == 0);
    op_.code = ramie::platform::io_code::read;
    op_.fd = ends_[0];
    op_.memory = &byte_;
    op_.count = 1;
    on_.submit(op_);
  }
  ~pending_read() {
    for (const int end : ends_) ::close(end);
  }
  pending_read(const pending_read&) = delete;
  pending_read& operator=(const pending_read&) = delete;

  // Must be called: until then the backend has the operation.
  void finish() {
    REQUIRE(::write(ends_[1], "x", 1) == 1);
    ramie::platform::io_operation* done[1] = {};
    while (on_.wait(done, ramie::platform::io_backend::never) == 0) {
    }
  }

 private:
  ramie::platform::io_backend& on_;
  int ends_[2];
  char byte_ = 0;
  ramie::platform::io_operation op_;
};

}  // namespace test
