// SPDX-License-Identifier: BSL-1.0
// An echo server with nothing between it and io_uring. Each worker has a ring and connections of its own; one system
// call a turn submits what the turn before asked for and waits.
//
// An echo is a send and the receive of the next message, linked: the send tells nothing if it is well, so a message is
// two submissions and one completion. That is no slower than the other ways tried (a completion each, multishot
// receives with a ring of buffers), and the other flags of the ring are no faster: docs/performance.md.
#include <liburing.h>

#include <compare/server.hpp>

namespace {

using namespace compare;

struct connection {
  int fd;
  char data[4096];
};

class loop {
 public:
  explicit loop(int inbox) : inbox_(inbox) {}

  void run() {
    io_uring_params p{};
    p.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN;
    errno = -::io_uring_queue_init_params(4096, &ring_, &p);
    checked(-errno, "io_uring_queue_init_params");
    await_connection();
    for (;;) {
      ::io_uring_submit_and_wait(&ring_, 1);
      io_uring_cqe* done;
      unsigned head, count = 0;
      io_uring_for_each_cqe(&ring_, head, done) {
        ++count;
        complete(static_cast<connection*>(::io_uring_cqe_get_data(done)), done->res);
      }
      ::io_uring_cq_advance(&ring_, count);
    }
  }

 private:
  io_uring_sqe* entry() {
    if (::io_uring_sq_space_left(&ring_) == 0) ::io_uring_submit(&ring_);
    return ::io_uring_get_sqe(&ring_);
  }

  // Null stands for the inbox.
  void await_connection() {
    io_uring_sqe* const e = entry();
    ::io_uring_prep_read(e, inbox_, &arrived_, sizeof arrived_, 0);
    ::io_uring_sqe_set_data(e, nullptr);
  }
  void receive(connection* c) {
    io_uring_sqe* const e = entry();
    ::io_uring_prep_recv(e, c->fd, c->data, sizeof c->data, 0);
    ::io_uring_sqe_set_data(e, c);
  }
  // All of it, by the kernel's own retries; if that fails the receive ends with ECANCELED.
  void send_and_receive(connection* c, int size) {
    if (::io_uring_sq_space_left(&ring_) < 2) ::io_uring_submit(&ring_);
    io_uring_sqe* const e = entry();
    ::io_uring_prep_send(e, c->fd, c->data, static_cast<std::size_t>(size), MSG_WAITALL | MSG_NOSIGNAL);
    ::io_uring_sqe_set_flags(e, IOSQE_IO_LINK | IOSQE_CQE_SKIP_SUCCESS);
    ::io_uring_sqe_set_data(e, &failed_);
    receive(c);
  }

  void complete(connection* c, int result) {
    if (c == nullptr) {
      receive(new connection{arrived_, {}});
      await_connection();
    } else if (c == &failed_) {
      return;
    } else if (result > 0) {
      send_and_receive(c, result);
    } else {
      ::close(c->fd);
      delete c;
    }
  }

  io_uring ring_{};
  int inbox_, arrived_ = -1;
  connection failed_{};  // whom sends that failed tell
};

result serve(unsigned workers, const sizes&) {
  std::vector<int> inboxes;
  for (unsigned w = 0; w < workers; ++w) {
    int ends[2];
    checked(::pipe(ends), "pipe");
    inboxes.push_back(ends[1]);
    std::thread([inbox = ends[0]] { loop(inbox).run(); }).detach();
  }
  accept_until_stdin_closes(0, [&](int fd, unsigned number) {
    if (::write(inboxes[number % workers], &fd, sizeof fd) != sizeof fd) fail("a pipe took no descriptor");
  });
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {{"echo", 2, serve}};
  return run_program(argc, argv, all);
}
