// SPDX-License-Identifier: BSL-1.0
// One direction of a duplex: bytes that are handed over, back-pressure, and an end that leaves nobody waiting.
#include <cerrno>
#include <cstddef>
#include <limits>

#include "io/src/stream/byte_pipe.hpp"

#include "scenarios.hpp"
#include "waits.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace ramie::io_internal;

enum class mood : std::uint8_t {
  calm,
  disturbed,  // the second reader is woken by accident
  cancelled,  // the second reader is cancelled while it waits
};

// Two bytes, or one, through room for one, then the end. One reads to the end, another once, perhaps. Every byte is
// read once, and one who leaves takes none along.
class pipe_scenario final : public scenario {
 public:
  pipe_scenario(bool two_writers, mood m) : two_writers_(two_writers), mood_(m) {}
  threads_of threads() override {
    threads_of all{[this] { read_to_the_end(); }, [this] { read_once(); },
                   [this] { write(2, two_writers_ ? 1 : bytes_); }};
    if (two_writers_) all.push_back([this] { write(3, 1); });
    if (mood_ == mood::disturbed) all.push_back([this] { self_[1].wake_by_accident(1); });
    if (mood_ == mood::cancelled) all.push_back([this] { cancellation_.strike(self_[1]); });
    return all;
  }
  void check() override {
    require(read_[0] + read_[1] == bytes_ && pipe_.size() == 0, "a byte is lost, or read twice");
    require(sum_[0] + sum_[1] == 2 * bytes_ + (two_writers_ ? 1 : 0), "another byte was read");
  }

 private:
  static constexpr std::ptrdiff_t under_way = std::numeric_limits<std::ptrdiff_t>::min();

  // As duplex_call does it. What was refused is made anew.
  template <class Waitable, class Call>
  std::ptrdiff_t perform(Waitable on, Call& call, fiber& self) {
    while (call.result == under_way) self.wait(on, call);
    call.wakes.complete_all();
    return call.result;
  }
  void write(int who, int bytes) {
    const std::byte mine{static_cast<unsigned char>(who)};
    for (int i = 0; i < bytes; ++i) {
      pipe_write call({&mine, 1});
      call.result = under_way;
      require(perform(byte_pipe::writing(pipe_), call, self_[who]) == 1, "a byte was not taken");
    }
    if (written_.fetch_add(bytes) + bytes == bytes_) pipe_.end_writing(-EPIPE);
  }
  // False: the end.
  bool read(int who) {
    std::byte into[2];
    pipe_read call(into);
    call.result = under_way;
    byte_pipe::reading on(pipe_);
    if (mood_ == mood::cancelled && who == 1 && !cancellation_.wait(self_[who], on, call)) {
      require(call.result == under_way, "cancelled, though it was served");
      return false;
    }
    const std::ptrdiff_t n = perform(on, call, self_[who]);
    require(n >= 0, "nobody closed it");
    for (std::ptrdiff_t i = 0; i < n; ++i) sum_[who] += std::to_integer<int>(into[i]);
    read_[who] += static_cast<int>(n);
    return n != 0;
  }
  void read_to_the_end() {
    while (read(0)) {
    }
  }
  void read_once() { (void)read(1); }

  const bool two_writers_;
  const mood mood_;
  const int bytes_ = mood_ == mood::calm ? 2 : 1;
  byte_pipe pipe_{1, 0};
  cancellation cancellation_;
  fiber self_[4];
  model_atomic<int> written_{0};
  int read_[2] = {0, 0}, sum_[2] = {0, 0};
};

// The reader's end is closed while both wait, or come to.
class pipe_closed final : public scenario {
 public:
  threads_of threads() override {
    return {[this] { write(0); }, [this] { write(1); }, [this] { pipe_.end_reading(-EBADF); }};
  }
  void check() override { require(pipe_.size() == 0, "something is left in a closed pipe"); }

 private:
  void write(int who) {
    const std::byte some[2]{};
    for (std::ptrdiff_t n = 0; n >= 0;) {
      pipe_write call(some);
      call.result = -1;
      byte_pipe::writing on(pipe_);
      while (call.result == -1) self_[who].wait(on, call);
      call.wakes.complete_all();
      n = call.result;
      require(n == -EPIPE || (n > 0 && ++taken_[who] <= 1), "more was taken than there is room for");
    }
  }
  byte_pipe pipe_{1, 0};
  fiber self_[2];
  int taken_[2] = {0, 0};
};

}  // namespace

list pipe_scenarios() {
  return {
      {"pipe", with<pipe_scenario>(false, mood::calm), 2, 2, 1},
      {"pipe_disturbed", with<pipe_scenario>(false, mood::disturbed), 2, 1, 1},
      {"pipe_one_leaves", with<pipe_scenario>(false, mood::cancelled), 2, 1, 1},
      {"pipe_two_writers", with<pipe_scenario>(true, mood::calm), 2, 1, 1},
      {"pipe_closed", with<pipe_closed>(), 3, 2, 1},
  };
}

}  // namespace explore
