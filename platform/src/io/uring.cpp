// SPDX-License-Identifier: BSL-1.0
// io_uring behind the contract of io_backend.hpp.
//
// One ring, used under a lock: by its worker nearly always, by another thread when that worker is held up by a fiber.
//
// Rejected: IORING_SETUP_SINGLE_ISSUER and DEFER_TASKRUN, with which only the worker itself could fetch completions.
// COOP_TASKRUN instead: the kernel does not interrupt a running worker for each completion, but posts them when the
// worker enters the kernel next, at the clock tick at the latest. (Since 5.19; older kernels interrupt.)
//
// Invariants, all under the lock
//   UR1  A submitted operation is in `unsent_`, because the submission queue had no room, or is the user data of
//        exactly one of: an entry of that queue, a request in the kernel, a completion.
//   UR2  A cancellation is queued behind the operation it names, and is in the kernel before that operation's memory
//        can be another's: entries are taken in order.
//   UR3  An operation that the kernel ends with -EAGAIN, because its descriptor is O_NONBLOCK, is submitted again when
//        a poll request has completed. `cancelled` is remembered in its state, because in between the kernel has
//        nothing to cancel.
//   UR4  `asleep` is set before the sleeper looks for `woken`, and `woken` before the waker looks for `asleep`.
#include <liburing.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <utility>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/io_backend.hpp>
#include <ramie/platform/thread.hpp>

#include "io_mechanisms.hpp"

namespace ramie::platform {

namespace {

constexpr unsigned most_submissions = 256;
constexpr unsigned most_completions = 4096;
constexpr std::chrono::milliseconds retry_interval{1};  // of submissions that the kernel does not accept

// Bits of io_operation::state.
constexpr std::uint32_t cancelled = 1;
constexpr std::uint32_t polling = 2;
constexpr std::uint32_t handed_out = 4;
constexpr std::uint32_t faulty = 8;  // replaced by a NOP, whose completion counts as -EAGAIN or -EINTR (faults.hpp)

constexpr std::uint8_t needed[] = {IORING_OP_NOP,     IORING_OP_READ,    IORING_OP_WRITE, IORING_OP_READV,
                                   IORING_OP_WRITEV,  IORING_OP_RECV,    IORING_OP_SEND,  IORING_OP_RECVMSG,
                                   IORING_OP_SENDMSG, IORING_OP_ACCEPT,  IORING_OP_CONNECT, IORING_OP_POLL_ADD,
                                   IORING_OP_FSYNC,   IORING_OP_ASYNC_CANCEL};

[[noreturn]] void refused(int error, const char* what) {
  throw std::system_error(error, std::system_category(), what);
}

class ring {
 public:
  ring() {
    io_uring_params p{};
    const bool small = faults::occurs(io_fault::small_queues);
    const unsigned submissions = small ? 2 : most_submissions;
    p.cq_entries = small ? 4 : most_completions;
    p.flags = IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP;
    const auto modest = p.flags;
    p.flags |= IORING_SETUP_COOP_TASKRUN | IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL;
    int error = io_uring_queue_init_params(submissions, &it, &p);
    if (error == -EINVAL) {
      p = {};
      p.cq_entries = most_completions;
      p.flags = modest;
      error = io_uring_queue_init_params(submissions, &it, &p);
    }
    if (error != 0) refused(-error, "ramie: io_uring_setup");
    constexpr unsigned features = IORING_FEAT_EXT_ARG | IORING_FEAT_NODROP | IORING_FEAT_RW_CUR_POS;
    if ((p.features & features) != features || !knows_all()) {
      io_uring_queue_exit(&it);
      refused(ENOSYS, "ramie: io_uring_setup: a kernel before 5.11");
    }
  }
  ~ring() { io_uring_queue_exit(&it); }
  ring(const ring&) = delete;
  ring& operator=(const ring&) = delete;

  io_uring it{};

 private:
  [[nodiscard]] bool knows_all() noexcept {
    io_uring_probe* const probe = io_uring_get_probe_ring(&it);
    if (probe == nullptr) return false;
    bool all = true;
    for (const auto op : needed) all = all && io_uring_opcode_supported(probe, op) != 0;
    io_uring_free_probe(probe);
    return all;
  }
};

// First in, first out; an operation may be removed from anywhere in it.
class operation_queue {
 public:
  [[nodiscard]] io_operation* first() const noexcept { return first_; }
  void add(io_operation& op) noexcept {
    op.next = nullptr;
    op.link = last_;
    *last_ = &op;
    last_ = &op.next;
  }
  void remove(io_operation& op) noexcept {
    *op.link = op.next;
    (op.next != nullptr ? op.next->link : last_) = op.link;
    op.link = nullptr;
  }

 private:
  io_operation* first_ = nullptr;
  io_operation** last_ = &first_;
};

class uring_backend final : public io_backend {
 public:
  [[nodiscard]] io_mechanism mechanism() const noexcept override { return io_mechanism::io_uring; }
  [[nodiscard]] bool wants_non_blocking() const noexcept override { return false; }

  void submit(io_operation& op) noexcept override {
    std::lock_guard hold(mutex_);
    op.state = 0;
    op.link = nullptr;
    op.tried = false;
    ++under_way_;
    if (unsent_.first() != nullptr || !start(op)) unsent_.add(op);
  }

  void cancel(io_operation& op) noexcept override {
    std::lock_guard hold(mutex_);
    if ((op.state & (cancelled | handed_out)) != 0) return;
    op.state |= cancelled;
    if (op.link == nullptr && !ask_to_cancel(op)) uncancelled_.add(op);  // listed: it is not started any more
    if (asleep_) ring_bell();  // the sleeper sends it to the kernel, or hands the operation out
  }

  void flush() noexcept override {
    std::lock_guard hold(mutex_);
    push();
  }

  [[nodiscard]] std::size_t poll(std::span<io_operation*> out) noexcept override {
    std::lock_guard hold(mutex_);
    push();
    if (asleep_) return 0;  // the sleeper takes the completions; the bell's must not be taken from it
    const auto flags = IO_URING_READ_ONCE(*ring_.it.sq.kflags);
    if ((flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0) (void)io_uring_get_events(&ring_.it);
    return reap(out);
  }

  [[nodiscard]] std::size_t wait(std::span<io_operation*> out, time_point until) noexcept override {
    {
      std::lock_guard hold(mutex_);
      push();
      const std::size_t count = reap(out);
      if (count != 0 || std::exchange(woken_, false) || !arm_bell()) return count;
      push();
      if (!all_sent()) until = std::min(until, std::chrono::steady_clock::now() + retry_interval);
      asleep_ = true;
    }
    sleep(until);
    std::lock_guard hold(mutex_);
    asleep_ = woken_ = false;
    return reap(out);
  }

  void wake() noexcept override {
    std::lock_guard hold(mutex_);
    woken_ = true;
    if (asleep_) ring_bell();
  }

  [[nodiscard]] std::size_t under_way() const noexcept override { return under_way_; }

 private:
  // A free entry of the submission queue, or null: the kernel accepts no more until completions are fetched.
  [[nodiscard]] io_uring_sqe* entry() noexcept {
    if (faults::strikes(fault::submission)) return nullptr;
    io_uring_sqe* e = io_uring_get_sqe(&ring_.it);
    if (e != nullptr) return e;
    (void)io_uring_submit(&ring_.it);
    return io_uring_get_sqe(&ring_.it);
  }

  [[nodiscard]] bool start(io_operation& op) noexcept {
    io_uring_sqe* const e = entry();
    if (e == nullptr) return false;
    if (op.code != io_code::nothing && faults::occurs(io_fault::again)) {
      op.state |= faulty;
      io_uring_prep_nop(e);
    } else {
      prepare(*e, op);
    }
    io_uring_sqe_set_data(e, &op);
    return true;
  }

  static void prepare(io_uring_sqe& e, io_operation& op) noexcept {
    const auto flags = static_cast<int>(op.flags);
    const auto offset = static_cast<std::uint64_t>(op.offset);
    auto* const vectors = static_cast<iovec*>(op.memory);
    auto* const message = static_cast<msghdr*>(op.memory);
    auto* const address = static_cast<sockaddr*>(op.memory);
    if ((op.state & polling) != 0) return io_uring_prep_poll_add(&e, op.fd, awaited(op));
    switch (op.code) {
      case io_code::nothing: return io_uring_prep_nop(&e);
      case io_code::read: return io_uring_prep_read(&e, op.fd, op.memory, op.count, offset);
      case io_code::write:
        io_uring_prep_write(&e, op.fd, op.memory, op.count, offset);
        e.rw_flags = flags;
        return;
      case io_code::read_vector: return io_uring_prep_readv(&e, op.fd, vectors, op.count, offset);
      case io_code::write_vector: return io_uring_prep_writev(&e, op.fd, vectors, op.count, offset);
      case io_code::receive: return io_uring_prep_recv(&e, op.fd, op.memory, op.count, flags);
      case io_code::send: return io_uring_prep_send(&e, op.fd, op.memory, op.count, flags | MSG_NOSIGNAL);
      case io_code::receive_message: return io_uring_prep_recvmsg(&e, op.fd, message, op.flags);
      case io_code::send_message: return io_uring_prep_sendmsg(&e, op.fd, message, op.flags | MSG_NOSIGNAL);
      case io_code::accept:
        return io_uring_prep_accept(&e, op.fd, address, address != nullptr ? &op.count : nullptr, flags);
      case io_code::connect: return io_uring_prep_connect(&e, op.fd, address, op.count);
      case io_code::ready: return io_uring_prep_poll_add(&e, op.fd, op.flags);
      case io_code::sync: return io_uring_prep_fsync(&e, op.fd, flags != 0 ? IORING_FSYNC_DATASYNC : 0u);
    }
  }

  [[nodiscard]] bool ask_to_cancel(io_operation& op) noexcept {
    io_uring_sqe* const e = entry();
    if (e == nullptr) return false;
    io_uring_prep_cancel(e, &op, 0);
    io_uring_sqe_set_data(e, nullptr);
    return true;
  }

  void ring_bell() const noexcept { (void)!::eventfd_write(bell_.get(), 1); }

  // False: the kernel does not accept more for now, for lack of memory or because completions must be fetched first.
  [[nodiscard]] bool all_sent() noexcept {
    return io_uring_sq_ready(&ring_.it) == 0 && unsent_.first() == nullptr && uncancelled_.first() == nullptr;
  }

  // Queues what had no room before, then passes the submission queue to the kernel.
  void push() noexcept {
    for (io_operation* op = uncancelled_.first(); op != nullptr && ask_to_cancel(*op); op = uncancelled_.first()) {
      uncancelled_.remove(*op);
    }
    for (io_operation* op = unsent_.first(); op != nullptr; op = unsent_.first()) {
      if ((op->state & cancelled) != 0) break;  // reap() hands it out
      unsent_.remove(*op);                      // an operation that is started is in no list
      if (start(*op)) continue;
      unsent_.add(*op);  // the last one now: no order is promised
      break;
    }
    if (io_uring_sq_ready(&ring_.it) != 0) (void)io_uring_submit(&ring_.it);
  }

  [[nodiscard]] std::size_t reap(std::span<io_operation*> out) noexcept {
    std::size_t count = 0;
    for (io_operation* op = unsent_.first(); op != nullptr && count < out.size();) {
      io_operation* const following = op->next;
      if ((op->state & cancelled) != 0) {
        unsent_.remove(*op);
        op->result = -ECANCELED;
        op->state |= handed_out;
        out[count++] = op;
      }
      op = following;
    }
    io_uring_cqe* cqe = nullptr;
    while (count < out.size() && io_uring_peek_cqe(&ring_.it, &cqe) == 0) {
      void* const data = io_uring_cqe_get_data(cqe);
      const std::int32_t result = cqe->res;
      io_uring_cqe_seen(&ring_.it, cqe);
      if (data == &rung_) {
        bell_armed_ = false;
      } else if (data != nullptr && settle(*static_cast<io_operation*>(data), result)) {
        out[count++] = static_cast<io_operation*>(data);
      }
    }
    under_way_ -= count;
    return count;
  }

  // The kernel has completed it. False: it is submitted again.
  [[nodiscard]] bool settle(io_operation& op, std::int32_t result) noexcept {
    if (op.link != nullptr) uncancelled_.remove(op);
    if ((op.state & faulty) != 0) {
      op.state &= ~faulty;
      result = (op.state & polling) != 0 ? -EINTR : -EAGAIN;
    }
    // -ECANCELED without a cancellation: the thread that submitted it has ended, and the kernel cancels its requests.
    const bool again =
        result == -EINTR || result == -ECANCELED || ((op.state & polling) != 0 && result >= 0);
    const bool not_yet = result == -EAGAIN || (op.code == io_code::connect && result == -EALREADY);
    if ((again || not_yet) && (op.state & cancelled) == 0) {
      op.state = not_yet ? polling : 0;
      if (!start(op)) unsent_.add(op);
      return false;
    }
    op.result = again || not_yet ? -ECANCELED : result;
    op.state |= handed_out;
    return true;
  }

  [[nodiscard]] bool arm_bell() noexcept {
    if (bell_armed_) return true;
    io_uring_sqe* const e = entry();
    if (e == nullptr) return false;
    io_uring_prep_read(e, bell_.get(), &rung_, sizeof rung_, 0);
    io_uring_sqe_set_data(e, &rung_);
    return bell_armed_ = true;
  }

  // Only waits in the kernel: does not touch the queues, for which the caller would need the lock.
  void sleep(time_point until) noexcept {
    if (faults::strikes(fault::io_sleep)) return;
    __kernel_timespec span{};
    io_uring_getevents_arg how{};
    if (until != never) {
      const auto [seconds, nanoseconds] = time_left(until);
      span.tv_sec = seconds;
      span.tv_nsec = nanoseconds;
      how.ts = reinterpret_cast<std::uintptr_t>(&span);
    }
    (void)::syscall(SYS_io_uring_enter, ring_.it.ring_fd, 0u, 1u, IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &how,
                    sizeof how);
  }

  const unique_fd bell_{::eventfd(0, EFD_CLOEXEC), "ramie: eventfd"};
  std::uint64_t rung_ = 0;  // what is read from the bell; its address is that request's user data
  ring ring_;
  mutex mutex_;
  operation_queue unsent_;       // submitted, but the submission queue had no room
  operation_queue uncancelled_;  // to be cancelled, likewise
  counter under_way_;
  bool bell_armed_ = false;
  bool asleep_ = false;
  bool woken_ = false;
};

}  // namespace

std::unique_ptr<io_backend> make_uring_backend() {
  return std::make_unique<uring_backend>();
}

}  // namespace ramie::platform
