// SPDX-License-Identifier: BSL-1.0
// on_readable and on_writable on a plain thread, which has no I/O driver: the watcher's thread waits in its place. For
// fibers it is runtime/src/io/readiness_source.cpp.
//
// While the select is listed, the descriptor is in an epoll set of its own, and that set is watched. So several
// threads may wait for one descriptor, which an epoll set takes only once, and it is neither copied nor kept open. Linux
// allows 500 of them at once for one descriptor; wait_readable on a plain thread has no such limit.
//
// Rejected: a copy of the descriptor in the watcher's set. A pipe that its owner closes would stay open, and to close
// the copy would drop the locks (F_SETLK) that the process has on the file.
#include <ramie/descriptor.hpp>

#include <sys/epoll.h>

#include <cerrno>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include <ramie/runtime/current.hpp>
#include <ramie/runtime/io.hpp>
#include <ramie/runtime/ready.hpp>

#include "../system_call.hpp"
#include "../watcher.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

// Used by the thread that selects; on_ready, by the watcher's between publish and unpublish.
class readiness_watch final : private watched {
 public:
  explicit readiness_watch(readiness_wait& of) noexcept : of_(of) {}

  [[nodiscard]] bool try_take() {
    std::int32_t found = look();
    if (found == -EAGAIN) found = refused_;
    if (found == -EAGAIN) return false;
    of_.result = events_or_error(found, of_.events);
    if (of_.result < 0) throw_io_error(of_.result, (name() + advice(of_.result)).c_str());
    return true;
  }

  // What is ready by now is noticed by epoll.
  [[nodiscard]] bool publish(const waiter& node) noexcept {
    node_ = &node;
    try {
      begin();
      return true;
    } catch (const std::system_error& e) {
      refused_ = e.code().value() == EAGAIN ? -ENOMEM : -e.code().value();  // no thread is to be had
    } catch (const std::bad_alloc&) {
      refused_ = -ENOMEM;
    }
    return false;
  }

  void unpublish() noexcept {
    unwatch(std::exchange(number_, 0));
    set_ = unique_fd();
  }

 private:
  // Linux lets a file be in an epoll set inside an epoll set 500 times, and an epoll set be nested five deep.
  [[nodiscard]] static const char* advice(std::int32_t error) noexcept {
    return error == -EINVAL || error == -ELOOP ? " on a plain thread (more than 500 of them select on this descriptor, or it "
                                                 "is a nested epoll set; wait_readable and fibers have no such limit)"
                                               : "";
  }
  [[nodiscard]] std::string name() const { return std::string("ramie: ") + of_.what; }

  [[nodiscard]] std::int32_t look() const noexcept {
    if (of_.fd < 0) return -EBADF;
    platform::io_operation op;
    op.code = platform::io_code::ready;
    op.fd = of_.fd;
    op.flags = of_.events;
    return platform::try_at_once(op);
  }

  void begin() {
    const std::string what = name();
    set_ = unique_fd(::epoll_create1(EPOLL_CLOEXEC), what.c_str());
    epoll_event event{};
    event.events = of_.events;  // EPOLLIN is POLLIN, EPOLLOUT is POLLOUT
    (void)value_or_throw(outcome_of([&] { return ::epoll_ctl(set_.get(), EPOLL_CTL_ADD, of_.fd, &event); }),
                         what.c_str());
    number_ = watch(set_.get(), EPOLLIN, *this, what.c_str());
  }

  // Once: whoever looks and finds nothing publishes again.
  [[nodiscard]] then on_ready() noexcept override {
    waker(*node_).wake();
    return then::remove;
  }

  readiness_wait& of_;
  const waiter* node_ = nullptr;
  unique_fd set_;                   // while it is published
  std::uint64_t number_ = 0;        // of the watch, likewise
  std::int32_t refused_ = -EAGAIN;  // another -errno: it can't be waited for
};
static_assert(sizeof(readiness_watch) <= sizeof(readiness_wait::memory));

readiness_watch& watch_of(const ready_source& from) noexcept {
  return *std::launder(reinterpret_cast<readiness_watch*>(static_cast<readiness_wait*>(from.what)->memory));
}

constexpr ready_ops ops_of_watch{
    [](const ready_source& from, void* memory) -> waiter& {
      auto& wait = *static_cast<readiness_wait*>(from.what);
      ::new (wait.memory) readiness_watch(wait);
      return make_ready_node<waiter>(memory);
    },
    [](const ready_source& from, waiter&) noexcept { std::destroy_at(&watch_of(from)); },
    [](const ready_source& from, waiter&) { return watch_of(from).try_take(); },
    [](const ready_source& from, waiter& node) noexcept { return watch_of(from).publish(node); },
    [](const ready_source& from, waiter&) noexcept { watch_of(from).unpublish(); }};

}  // namespace

ready_source readiness_source(readiness_wait& wait) noexcept {
  if (current_context().local != nullptr) return source_of(wait);
  return {&ops_of_watch, &wait};
}

}  // namespace ramie::io_internal
