// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/io_backend.hpp>

#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>

#include <ramie/platform/faults.hpp>

#include "io_mechanisms.hpp"

namespace ramie::platform {

#if defined(RAMIE_NO_IO_URING)
std::unique_ptr<io_backend> make_uring_backend() {
  throw std::system_error(ENOSYS, std::system_category(), "ramie: io_uring_setup: built without it");
}
#endif

namespace {

std::unique_ptr<io_backend> make(io_mechanism which) {
  const auto refuse_if = [](bool so, int error, const char* what) {
    if (so) throw std::system_error(error, std::system_category(), what);
  };
  if (which == io_mechanism::poll) return make_poll_backend();
  if (which == io_mechanism::epoll) {
    refuse_if(faults::strikes(fault::epoll), EMFILE, "ramie: epoll_create1");
    return make_epoll_backend();
  }
  refuse_if(faults::strikes(fault::io_uring), EPERM, "ramie: io_uring_setup");
  return make_uring_backend();
}

// What the environment asks for; automatic if it says nothing.
io_mechanism asked_for() {
  const char* const text = std::getenv("RAMIE_IO_BACKEND");
  if (text == nullptr || *text == 0) return io_mechanism::automatic;
  for (const auto which : {io_mechanism::io_uring, io_mechanism::epoll, io_mechanism::poll}) {
    if (std::string_view(text) == to_string(which)) return which;
  }
  throw std::system_error(EINVAL, std::system_category(), "ramie: RAMIE_IO_BACKEND: none of io_uring, epoll, poll");
}

}  // namespace

const char* to_string(io_mechanism which) noexcept {
  switch (which) {
    case io_mechanism::automatic: return "automatic";
    case io_mechanism::io_uring: return "io_uring";
    case io_mechanism::epoll: return "epoll";
    case io_mechanism::poll: return "poll";
  }
  return "unknown";
}

#if !defined(RAMIE_HOOKS)
std::unique_ptr<io_backend> with_faults(std::unique_ptr<io_backend> inner) {
  return inner;
}
#endif

std::unique_ptr<io_backend> make_io_backend(io_mechanism which, std::string& why_not) {
  why_not.clear();
  if (which == io_mechanism::automatic) which = asked_for();
  if (which != io_mechanism::automatic) return with_faults(make(which));
  for (const auto each : {io_mechanism::io_uring, io_mechanism::epoll}) {
    try {
      return with_faults(make(each));
    } catch (const std::system_error& e) {
      if (!why_not.empty()) why_not += "; ";
      why_not += e.what();
    }
  }
  return with_faults(make(io_mechanism::poll));
}

}  // namespace ramie::platform
