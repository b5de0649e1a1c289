// SPDX-License-Identifier: BSL-1.0
#include <ramie/descriptor.hpp>

#include <poll.h>

#include <cerrno>

#include <ramie/runtime/io.hpp>

#include "../errors.hpp"

namespace ramie::inline v0 {

using io_internal::error_of;
using io_internal::or_throw;
using runtime_internal::open_descriptor;
using runtime_internal::wait_reason;

namespace {

const wait_reason waits_to_be_readable{"wait_readable"};
const wait_reason waits_to_be_writable{"wait_writable"};

// To read: what was sent before the other end went can still be read. To write: room is of no use if nobody reads.
readiness meaning_of(std::int32_t found, std::uint32_t wanted) noexcept {
  const bool ready = wanted == POLLIN ? (found & POLLIN) != 0 : (found & (POLLERR | POLLHUP)) == 0;
  return ready ? readiness::ready : readiness::hung_up;
}

readiness wait_for(int fd, std::uint32_t events, const wait_reason& why, std::error_code& ec, deadline until) {
  const std::int32_t result = open_descriptor::wait_ready(fd, events, why, until.when());
  ec.clear();
  if (result == -ETIMEDOUT) return readiness::timed_out;
  ec = error_of(result);
  return ec ? readiness::failed : meaning_of(result, events);
}

}  // namespace

const char* to_string(readiness what) noexcept {
  switch (what) {
    case readiness::ready: return "ready";
    case readiness::hung_up: return "hung up";
    case readiness::timed_out: return "timed out";
    case readiness::failed: break;
  }
  return "failed";
}

readiness wait_readable(int fd, std::error_code& ec, deadline until) {
  return wait_for(fd, POLLIN, waits_to_be_readable, ec, until);
}
readiness wait_readable(int fd, deadline until) {
  return or_throw("ramie: wait_readable", [&](auto& ec) { return wait_readable(fd, ec, until); });
}
readiness wait_writable(int fd, std::error_code& ec, deadline until) {
  return wait_for(fd, POLLOUT, waits_to_be_writable, ec, until);
}
readiness wait_writable(int fd, deadline until) {
  return or_throw("ramie: wait_writable", [&](auto& ec) { return wait_writable(fd, ec, until); });
}

}  // namespace ramie::inline v0

namespace ramie::io_internal {

using namespace runtime_internal;

readiness readiness_found(const readiness_wait& by) noexcept {
  return meaning_of(by.result, by.events);
}

namespace {

readiness_wait wait_to(int fd, std::uint32_t events, const char* what) noexcept {
  readiness_wait wait;
  wait.fd = fd;
  wait.events = events;
  wait.what = what;
  return wait;
}

}  // namespace

readiness_wait wait_to_read(int fd) noexcept {
  return wait_to(fd, POLLIN, "on_readable");
}
readiness_wait wait_to_write(int fd) noexcept {
  return wait_to(fd, POLLOUT, "on_writable");
}

}  // namespace ramie::io_internal
