// SPDX-License-Identifier: BSL-1.0
// Many operations at once: more than any queue holds, and random ones with an account of every byte.
#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <iterator>
#include <set>
#include <utility>
#include <vector>

#include <support/io_backend.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace unit_io_backend_load {

using namespace std::chrono_literals;
using ramie::platform::io_operation;
using test::on_each_backend;
using test::owned_fd;
using test::receive;
using test::send;
using test::tested_backend;

TEST_CASE("more operations than any queue holds are handed out, each once", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    constexpr std::size_t many = 6000;
    auto [here, there] = b.pair();
    std::vector<io_operation> all(many);
    std::vector<char> bytes(many);
    for (std::size_t i = 0; i < many; ++i) {
      if (i % 3 == 0) all[i] = receive(here, &bytes[i], 1);
      b->submit(all[i]);
    }
    for (std::size_t i = 0; i < many; i += 3) b->cancel(all[i]);
    std::set<const io_operation*> came;
    std::array<io_operation*, 64> out{};
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (came.size() < many) {
      const std::size_t count = b->wait(out, patience);
      REQUIRE(std::chrono::steady_clock::now() < patience);
      for (std::size_t i = 0; i < count; ++i) REQUIRE(came.insert(out[i]).second);
    }
    CHECK(b.take_ready() == 0);
    bool right = true;
    for (std::size_t i = 0; i < many; ++i) right = right && all[i].result == (i % 3 == 0 ? -ECANCELED : 0);
    CHECK(right);
  });
}

// Pairs of sockets; every byte is the number of those before it, so a byte that is lost, doubled or out of turn shows.
class traffic {
 public:
  traffic(tested_backend& b, std::uint64_t seed) : b_(b), random_(seed) {
    for (auto& l : lines_) {
      auto ends = b.pair();
      l.from = std::move(ends[0]);
      l.to = std::move(ends[1]);
    }
  }
  void run(int steps) {
    for (int i = 0; i < steps && right; ++i) {
      line& l = lines_[random_.below(std::size(lines_))];
      switch (random_.below(6)) {
        case 0:
        case 1: begin_receive(l); break;
        case 2:
        case 3: begin_send(l); break;
        case 4:
          if (l.receiving && random_.one_in(2)) b_->cancel(l.in);
          if (l.sending && random_.one_in(8)) b_->cancel(l.out);
          break;
        default: take(b_->poll(out_));
      }
    }
    for (auto& l : lines_) {
      if (l.receiving) b_->cancel(l.in);
      if (l.sending) b_->cancel(l.out);
    }
    const auto patience = std::chrono::steady_clock::now() + 20s;
    while (right && under_way_ > 0) {
      take(b_->wait(out_, patience));
      right = right && std::chrono::steady_clock::now() < patience;
    }
  }
  bool right = true;
  int cancelled = 0;
  std::size_t received = 0;

 private:
  struct line {
    owned_fd from, to;
    io_operation in, out;
    bool receiving = false, sending = false;
    std::size_t sent = 0, came = 0;
    std::array<unsigned char, 300> outgoing{}, incoming{};
  };

  void begin_receive(line& l) {
    if (std::exchange(l.receiving, true)) return;
    l.incoming.fill(0xee);
    l.in = receive(l.to, l.incoming.data(), 1 + random_.below(300));
    ++under_way_;
    b_->submit(l.in);
  }
  void begin_send(line& l) {
    if (std::exchange(l.sending, true)) return;
    for (std::size_t i = 0; i < l.outgoing.size(); ++i) l.outgoing[i] = static_cast<unsigned char>(l.sent + i);
    l.out = send(l.from, l.outgoing.data(), 1 + random_.below(300));
    ++under_way_;
    b_->submit(l.out);
  }
  void take(std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) {
      --under_way_;
      const auto l = std::find_if(std::begin(lines_), std::end(lines_),
                                  [&](const line& each) { return &each.in == out_[i] || &each.out == out_[i]; });
      right = right && l != std::end(lines_) && end(*l, *out_[i]);
    }
  }
  // Whether that can be right.
  [[nodiscard]] bool end(line& l, const io_operation& op) {
    const bool in = &op == &l.in;
    if (!std::exchange(in ? l.receiving : l.sending, false)) return false;  // nobody waits for it
    if (op.result == -ECANCELED) ++cancelled;
    const std::size_t count = op.result > 0 ? static_cast<std::size_t>(op.result) : 0;
    if (op.result <= 0 && op.result != -ECANCELED) return false;
    if (!in) {
      l.sent += count;
      return count <= op.count;
    }
    for (std::size_t i = 0; i < l.incoming.size(); ++i) {
      const auto expected = i < count ? static_cast<unsigned char>(l.came + i) : 0xee;
      if (l.incoming[i] != expected) return false;
    }
    l.came += count;
    received += count;
    return true;
  }

  tested_backend& b_;
  test::dice random_;
  line lines_[5];
  std::array<io_operation*, 7> out_{};
  int under_way_ = 0;
};

TEST_CASE("random operations lose no byte and are handed out once", "[unit][io]") {
  on_each_backend([](tested_backend& b) {
    int cancelled = 0;
    for (std::uint64_t seed = 1; seed <= (test::large() ? 200u : 5u); ++seed) {
      INFO("seed " << seed);
      traffic t(b, seed);
      t.run(test::scaled(5'000, 1'000));
      CHECK(t.right);
      CHECK(t.received > 0);
      CHECK(b.take_ready() == 0);
      cancelled += t.cancelled;
    }
    CHECK(cancelled > 0);
  });
}

}  // namespace unit_io_backend_load
