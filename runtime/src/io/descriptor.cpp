// SPDX-License-Identifier: BSL-1.0
// Descriptors in use: when they are closed (IO13), and how fibers and plain threads wait for an operation.
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <new>
#include <optional>

#include <ramie/platform/linked_list.hpp>
#include <ramie/platform/unique_fd.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/current.hpp>
#include <ramie/runtime/io.hpp>
#include <ramie/runtime/spawn.hpp>

#include <ramie/blocking.hpp>
#include <ramie/cancel.hpp>

#include "../sched/scheduler.hpp"
#include "request.hpp"

namespace ramie::runtime_internal {

namespace {

const wait_reason waits_for_its_end{"input/output, until it is cancelled"};

// An operation that blocks no thread, whatever the flags of its descriptor are.
bool only_asks(const platform::io_operation& op) noexcept {
  return op.code == platform::io_code::ready;
}

}  // namespace

// Life -------------------------------------------------------------------------------------------------

descriptor_ref open_descriptor::adopt(int fd) {
  auto* const made = new (std::nothrow) open_descriptor(fd);
  if (made != nullptr) return descriptor_ref(made);
  ::close(fd);
  throw std::bad_alloc();
}

open_descriptor::~open_descriptor() {
  if (owned_ && !closing_) ::close(fd_);
}

descriptor_ref::descriptor_ref(const descriptor_ref& other) noexcept : it_(other.it_) {
  if (it_ != nullptr) it_->references_.fetch_add(1, std::memory_order_relaxed);
}

descriptor_ref::~descriptor_ref() {
  if (it_ == nullptr) return;
  // acq_rel: what others did with it comes before its end.
  if (it_->references_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete it_;
}

bool open_descriptor::is_open() const noexcept {
  std::lock_guard hold(lock_);
  return !closing_;
}

bool open_descriptor::in_use() const noexcept {
  std::lock_guard hold(lock_);
  return plain_uses_ != 0 || uses_ != nullptr;
}

bool open_descriptor::begin_use() noexcept {
  std::lock_guard hold(lock_);
  if (closing_) return false;
  ++plain_uses_;
  return true;
}

void open_descriptor::list(io_use& use) noexcept {
  platform::put_first(uses_, use, &io_use::next_, &io_use::previous_);
}

bool open_descriptor::nobody_left() const noexcept {
  return closing_ && plain_uses_ == 0 && uses_ == nullptr;
}

void open_descriptor::end_use() noexcept {
  std::unique_lock hold(lock_);
  --plain_uses_;
  const bool last = nobody_left();
  hold.unlock();
  if (last) ::close(fd_);
}

void open_descriptor::end_use(io_use& use) noexcept {
  std::unique_lock hold(lock_);
  platform::take_out(uses_, use, &io_use::next_, &io_use::previous_);
  const bool last = nobody_left();
  hold.unlock();
  if (last) ::close(fd_);
}

void open_descriptor::close() noexcept {
  std::unique_lock hold(lock_);
  if (closing_) return;
  closing_ = true;
  for (io_use* use = uses_; use != nullptr; use = use->next_) use->end();
  const bool last = nobody_left();
  hold.unlock();
  if (last) ::close(fd_);
}

int open_descriptor::release() noexcept {
  std::lock_guard hold(lock_);
  if (closing_) return -EBADF;
  if (plain_uses_ != 0 || uses_ != nullptr) return -EBUSY;
  closing_ = true;  // nobody begins a use any more, so nobody closes it, either
  if (set_non_blocking_) (void)::fcntl(fd_, F_SETFL, ::fcntl(fd_, F_GETFL) & ~O_NONBLOCK);
  return fd_;
}

// When it returns the descriptor is non-blocking. Several threads may set that at once.
void open_descriptor::make_non_blocking() noexcept {
  {
    std::lock_guard hold(lock_);
    if (non_blocking_) return;
  }
  const int changed = with_fd([](int fd) {
    const int flags = ::fcntl(fd, F_GETFL);
    return flags >= 0 && (flags & O_NONBLOCK) == 0 && ::fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 ? 1 : 0;
  });
  std::lock_guard hold(lock_);
  non_blocking_ = true;
  set_non_blocking_ = set_non_blocking_ || changed == 1;
}

// Operations -------------------------------------------------------------------------------------------

// Listed with its descriptor from begin() on.
class open_descriptor::use_of final : public io_use {
 public:
  use_of(open_descriptor& of, platform::io_backend& on, platform::io_operation& op) noexcept
      : of_(of), on_(on), op_(op) {}
  ~use_of() {
    if (listed_) of_.end_use(*this);
  }
  use_of(const use_of&) = delete;
  use_of& operator=(const use_of&) = delete;

  // Submits it. False: the descriptor is closed. With the descriptor's lock: close() finds it under way or not at all.
  [[nodiscard]] bool begin() noexcept {
    std::lock_guard hold(of_.lock_);
    if (of_.closing_) return false;
    of_.list(*this);
    listed_ = true;
    on_.submit(op_);
    return true;
  }
  void end() noexcept override { on_.cancel(op_); }

 private:
  open_descriptor& of_;
  platform::io_backend& on_;
  platform::io_operation& op_;
  bool listed_ = false;
};

std::int32_t open_descriptor::perform(platform::io_operation& op, const wait_reason& why, time_point until) {
  op.fd = fd_;
  for (;;) {
    call_context at = current_context();
    if (at.local == nullptr) return perform_as_thread(op, until);
    if (at.self == nullptr) no_fiber_to_wait();
    begin_operation(at);
    const std::int32_t result = perform_as_fiber(op, why, until);
    if (result != -ERESTART) return result;
  }
}

std::int32_t perform(const descriptor_ref& fd, platform::io_operation& op, const wait_reason& why, deadline until) {
  if (fd) return fd->perform(op, why, until.when());
  check_cancelled();
  return -EBADF;
}

std::int32_t open_descriptor::wait_ready(int fd, std::uint32_t events, const wait_reason& why, time_point until) {
  if (fd < 0) {
    check_cancelled();
    return -EBADF;
  }
  open_descriptor lent(fd, false);
  platform::io_operation op;
  op.code = platform::io_code::ready;
  op.flags = events;
  return events_or_error(lent.perform(op, why, until), events);
}

std::int32_t events_or_error(std::int32_t result, std::uint32_t wanted) noexcept {
  if (result == -EOPNOTSUPP)
    return static_cast<std::int32_t>(wanted);  // a regular file: epoll refuses what never waits
  return result > 0 && (result & POLLNVAL) != 0 ? -EBADF : result;
}

std::int32_t open_descriptor::perform_as_fiber(platform::io_operation& op, const wait_reason& why, time_point until) {
  worker& w = *this_worker();
  if (const int refused = w.sched.io.prepare(w, until)) return refused;
  platform::io_backend& backend = *w.io.backend();
  const bool of_file = platform::is_of_file(op);
  if (of_file || backend.wants_non_blocking()) {
    if (!of_file && !only_asks(op)) make_non_blocking();
    op.state = 0;
    const int result = with_fd([&op](int) { return platform::try_at_once(op); });
    if (result == -EOPNOTSUPP && backend.wants_non_blocking()) return perform_on_thread_of_pool(op);
    if (result != -EAGAIN && result != -EOPNOTSUPP) return result;
    op.tried = true;
  }
  return submit_and_wait(w, op, why, until);
}

std::int32_t open_descriptor::submit_and_wait(worker& w, platform::io_operation& op, const wait_reason& why,
                                              time_point until) {
  io_request request(op, *w.current.get());
  use_of use(*this, *w.io.backend(), op);
  if (!use.begin()) return -EBADF;
  w.sched.io.begun(w);
  waiter node;
  const wait_result ended = fiber_wait_returning(request, node, why, until);
  if (ended == wait_result::timed_out || ended == wait_result::cancelled) {
    use.end();
    (void)fiber_wait(request, node, waits_for_its_end, cancellable::no);
  }
  if (op.result != -ECANCELED) return op.result;
  if (ended == wait_result::timed_out) return -ETIMEDOUT;
  if (ended == wait_result::cancelled) check_cancelled();
  return is_open() ? -ERESTART : -EBADF;
}

// Shielded: what it has transferred counts, and a cancelled call would drop it.
std::int32_t open_descriptor::perform_on_thread_of_pool(platform::io_operation& op) {
  const shield until_it_is_done;
  try {
    return blocking([this, &op] { return with_fd([&op](int) { return platform::perform(op); }); });
  } catch (const std::system_error& e) {
    return e.code().value() == EAGAIN ? -ENOMEM : -e.code().value();  // as in io_driver::prepare
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
}

// Plain threads ----------------------------------------------------------------------------------------

namespace {

// What close() signals, polled by the thread beside its descriptor.
class close_event final : public io_use {
 public:
  close_event() noexcept : fd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), error(fd ? 0 : errno) {}
  void end() noexcept override { (void)!::eventfd_write(fd.get(), 1); }

  const platform::unique_fd fd;
  const int error;
};

}  // namespace

std::int32_t open_descriptor::perform_as_thread(platform::io_operation& op, time_point until) {
  if (platform::is_of_file(op)) return with_fd([&op](int) { return platform::perform(op); });
  if (!only_asks(op)) make_non_blocking();
  op.state = 0;
  std::int32_t result = with_fd([&op](int) { return platform::try_at_once(op); });
  if (result != -EAGAIN) return result;
  close_event closed;
  if (closed.error != 0) return -closed.error;
  if (!begin_use(closed)) return -EBADF;
  while (result == -EAGAIN) {
    pollfd both[] = {{fd_, static_cast<short>(platform::awaited(op)), 0}, {closed.fd.get(), POLLIN, 0}};
    timespec left{};
    const auto now = std::chrono::steady_clock::now();
    if (until != never && until > now) {
      const auto seconds = std::chrono::floor<std::chrono::seconds>(until - now);
      left = {seconds.count(), std::chrono::nanoseconds(until - now - seconds).count()};
    }
    (void)::ppoll(both, 2, until != never ? &left : nullptr, nullptr);
    if (both[1].revents != 0) {
      result = -EBADF;
    } else {
      result = platform::try_at_once(op);
      if (result == -EAGAIN && until != never && std::chrono::steady_clock::now() >= until) result = -ETIMEDOUT;
    }
  }
  end_use(closed);
  return result;
}

bool open_descriptor::begin_use(io_use& use) noexcept {
  std::lock_guard hold(lock_);
  if (closing_) return false;
  list(use);
  return true;
}

void throw_io_error(std::int32_t result, const char* what) {
  throw std::system_error(-result, std::system_category(), what);
}

}  // namespace ramie::runtime_internal
