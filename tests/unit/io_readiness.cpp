// SPDX-License-Identifier: BSL-1.0
// readiness_backend over a source that the test scripts: what another thread does while wait() sleeps happens inside the
// source's collect(), so that no thread has to be faster than another.
#include <cerrno>
#include <functional>
#include <memory>
#include <utility>

#include <support/io_backend.hpp>
#include <support/test.hpp>

#include "platform/src/io/readiness.hpp"

namespace unit_io_readiness {

using ramie::platform::io_backend;
using ramie::platform::io_mechanism;
using ramie::platform::io_operation;
using ramie::platform::readiness_backend;
using ramie::platform::readiness_source;

class scripted_source final : public readiness_source {
 public:
  int arm(std::int32_t, std::uint32_t) noexcept override { return 0; }
  std::size_t collect(std::span<event>, ramie::platform::time_point) noexcept override {
    if (while_asleep) std::exchange(while_asleep, nullptr)();
    return 0;
  }
  void interrupt() noexcept override { ++interrupts; }
  io_mechanism mechanism() const noexcept override { return io_mechanism::poll; }

  std::function<void()> while_asleep;  // runs once, in the next collect()
  int interrupts = 0;
};

struct scripted_backend {
  scripted_source* const source = new scripted_source;  // the backend's
  readiness_backend backend{std::unique_ptr<readiness_source>(source)};
  test::tested_backend descriptors{io_mechanism::poll};  // only for its sockets
  std::array<test::owned_fd, 2> ends = descriptors.pair();
  char buffer[8] = {};
  io_operation op = test::receive(ends[0], buffer, sizeof buffer);

  io_operation* wait() {
    io_operation* out[4] = {};
    return backend.wait(out, io_backend::never) == 1 ? out[0] : nullptr;
  }
};

TEST_CASE("a cancellation interrupts the thread that sleeps in wait()", "[unit][io]") {
  scripted_backend b;
  b.backend.submit(b.op);
  CHECK(b.source->interrupts == 0);  // nobody sleeps
  b.source->while_asleep = [&] { b.backend.cancel(b.op); };
  CHECK(b.wait() == &b.op);
  CHECK(b.op.result == -ECANCELED);
  CHECK(b.source->interrupts == 1);
}

TEST_CASE("an operation that is done when it is submitted interrupts the thread that sleeps in wait()", "[unit][io]") {
  scripted_backend b;
  REQUIRE(::send(b.ends[1].fd(), "here", 4, 0) == 4);
  b.source->while_asleep = [&] { b.backend.submit(b.op); };
  CHECK(b.wait() == &b.op);
  CHECK(b.op.result == 4);
  CHECK(b.source->interrupts == 1);
}

TEST_CASE("what is done before wait() sleeps interrupts nobody", "[unit][io]") {
  scripted_backend b;
  b.backend.submit(b.op);
  b.backend.cancel(b.op);
  CHECK(b.wait() == &b.op);
  CHECK(b.source->interrupts == 0);
}

}  // namespace unit_io_readiness
