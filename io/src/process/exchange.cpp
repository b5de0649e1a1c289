// SPDX-License-Identifier: BSL-1.0
// One fiber or thread serves a child's three pipes at once: they are in an epoll set, and it waits until that set has
// an event. Serving one pipe after the other could wait for a child that waits for the other one.
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>

#include <ramie/stream.hpp>

#include "plan.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_pipes{"process, output"};
constexpr std::size_t piece = 65536;
constexpr std::int32_t beyond_limit = -EMSGSIZE;  // an errno that pipes don't have

class pipe_exchange {
 public:
  pipe_exchange(process& with, std::string_view input, process_output& into, std::size_t limit)
      : with_(with), input_(input), into_(into), limit_(limit) {
    const auto fd = outcome_of([] { return ::epoll_create1(EPOLL_CLOEXEC); });
    throw_if(error_of(fd), "ramie: process_builder::output");
    ready_ = open_descriptor::adopt(static_cast<int>(fd));
    add(with.standard_input().native_handle(), EPOLLOUT, input_end);
    add(with.standard_output().native_handle(), EPOLLIN, output_end);
    add(with.standard_error().native_handle(), EPOLLIN, error_end);
  }

  std::int32_t run(deadline until) {
    buffer_.resize(piece);
    while (open_ != 0) {
      platform::io_operation op;
      op.code = platform::io_code::ready;
      op.flags = POLLIN;
      const auto result = ready_->perform(op, waits_for_pipes, until.when());
      if (result < 0) return result;
      std::array<epoll_event, 3> events;
      const int count = call_on(ready_, [&](int set) { return ::epoll_wait(set, events.data(), 3, 0); });
      if (count < 0) return count;
      for (int i = 0; i < count; ++i) {
        if (const auto failed = serve(events[static_cast<std::size_t>(i)].data.u32); failed < 0) return failed;
      }
    }
    return 0;
  }

 private:
  enum end : std::uint32_t { input_end, output_end, error_end };

  // O_NONBLOCK of our end does not affect the child's end.
  void add(int fd, std::uint32_t events, end which) {
    if (fd < 0) return;
    (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
    epoll_event event{};
    event.events = events;
    event.data.u32 = which;
    const int added = call_on(ready_, [&](int set) { return ::epoll_ctl(set, EPOLL_CTL_ADD, fd, &event); });
    throw_if(error_of(added), "ramie: process_builder::output");
    ++open_;
  }

  std::int32_t serve(std::uint32_t which) {
    if (which == input_end) return feed();
    return which == output_end ? read(with_.standard_output(), into_.out) : read(with_.standard_error(), into_.err);
  }

  std::int32_t feed() {
    pipe_writer& to = with_.standard_input();
    const auto result = outcome_of([&] { return ::write(to.native_handle(), input_.data(), input_.size()); });
    if (result == -EAGAIN) return 0;
    if (result < 0 && result != -EPIPE) return static_cast<std::int32_t>(result);
    if (result >= 0) input_.remove_prefix(static_cast<std::size_t>(result));
    if (result == -EPIPE || input_.empty()) drop(to);
    return 0;
  }

  std::int32_t read(pipe_reader& from, std::string& into) {
    const auto result = outcome_of([&] { return ::read(from.native_handle(), buffer_.data(), buffer_.size()); });
    if (result == -EAGAIN) return 0;
    if (result < 0) return static_cast<std::int32_t>(result);
    const auto size = static_cast<std::size_t>(result), room = limit_ - into.size();
    into.append(buffer_.data(), std::min(size, room));
    if (size > room) return beyond_limit;
    if (result == 0) drop(from);
    return 0;
  }

  // Closing alone would leave it in the set as long as another child that is being started has a copy.
  template <class End>
  void drop(End& which) {
    (void)call_on(ready_, [&](int set) { return ::epoll_ctl(set, EPOLL_CTL_DEL, which.native_handle(), nullptr); });
    which.close();
    --open_;
  }

  process& with_;
  std::string_view input_;
  process_output& into_;
  const std::size_t limit_;  // for each of the two outputs
  descriptor_ref ready_;
  int open_ = 0;
  std::string buffer_;
};

}  // namespace

std::error_code exchange_all(process& with, std::string_view input, process_output& into, std::size_t limit,
                             deadline until) {
  const auto result = pipe_exchange(with, input, into, limit).run(until);
  return result == beyond_limit ? stream_errc::limit_exceeded : error_of(result);
}

}  // namespace ramie::io_internal
