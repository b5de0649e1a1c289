// SPDX-License-Identifier: BSL-1.0
// Random programs of locks and events, with books that must balance: what is counted under a lock is counted exactly,
// every permit and every token is taken once or still there, and nobody waits for ever, though some of the parties are
// cancelled or too late while they wait.
//
// Half of the parties stay to the end and wait without a limit, so a permit, a wake or a notification that a leaving
// party took with it shows as a hang: the watchdog names the seed.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <shared_mutex>
#include <thread>

#include <ramie/ramie.hpp>
#include <support/finally.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace stress_sync_programs {

using namespace std::chrono_literals;

test::random_test this_test("programs of locks and events");

constexpr unsigned permits = 3;

struct world {
  ramie::mutex lock;
  long counted = 0;  // under it
  std::atomic<long> should_be_counted{0};

  ramie::semaphore gate{permits};
  std::atomic<int> inside{0}, too_many{0};

  ramie::mutex shelf_lock;
  ramie::condition_variable not_empty;
  long tokens = 0;  // under it
  std::atomic<long> produced{0}, consumed{0};

  ramie::shared_mutex page_lock;
  long left = 0, right = 0;  // equal under it
  std::atomic<int> torn{0};

  ramie::notify bell;
  std::atomic<long> mail{0}, delivered{0}, read{0};
};

class party {
 public:
  party(world& w, std::uint64_t seed, bool stays) : w_(w), dice_(seed), stays_(stays) {}

  void play(int turns) {
    for (int i = 0; i < turns; ++i) {
      switch (dice_.below(6)) {
        case 0: count(); break;
        case 1: pass_the_gate(); break;
        case 2: turn_the_page(); break;
        case 3: produce(); break;
        case 4: write(); break;
        default: ramie::yield();
      }
    }
  }
  // Each takes as many as it says, if it stays.
  void consume(int how_many) {
    for (int i = 0; i < how_many; ++i) {
      std::unique_lock hold(w_.shelf_lock);
      const auto some = [this] { return w_.tokens > 0; };
      if (stays_) {
        w_.not_empty.wait(hold, some);
      } else if (!w_.not_empty.wait_for(hold, patience(), some)) {
        continue;
      }
      --w_.tokens;
      ++w_.consumed;
    }
  }
  // Until all is read.
  void read(long all) {
    while (w_.read < all) {
      const long letters = w_.mail.exchange(0);
      w_.read += letters;
      if (letters == 0 && w_.read < all) wait_for_the_bell();
    }
    w_.bell.notify_one();  // the next one need not wait
  }
  void produce() {
    std::lock_guard hold(w_.shelf_lock);
    ++w_.tokens;
    ++w_.produced;
    w_.not_empty.notify_one();
  }
  void write() {
    ++w_.delivered;
    ++w_.mail;
    w_.bell.notify_one();
  }

 private:
  std::chrono::microseconds patience() { return std::chrono::microseconds(dice_.below(40)); }
  void wait_for_the_bell() {
    if (stays_ || dice_.one_in(2)) {
      w_.bell.wait();
    } else {
      (void)w_.bell.wait_for(patience());
    }
  }
  void count() {
    if (stays_ || dice_.one_in(2)) {
      w_.lock.lock();
    } else if (!w_.lock.try_lock_for(patience())) {
      return;
    }
    const test::finally after([this] { w_.lock.unlock(); });
    ++w_.counted;
    ++w_.should_be_counted;
    if (dice_.one_in(4)) ramie::yield();
  }
  void pass_the_gate() {
    const unsigned wanted = 1 + dice_.below(permits);
    if (stays_ || dice_.one_in(2)) {
      w_.gate.acquire(wanted);
    } else if (!w_.gate.try_acquire_for(patience(), wanted)) {
      return;
    }
    const test::finally after([this, wanted] {
      w_.inside -= static_cast<int>(wanted);
      w_.gate.release(wanted);
    });
    if ((w_.inside += static_cast<int>(wanted)) > static_cast<int>(permits)) ++w_.too_many;
    if (dice_.one_in(4)) ramie::yield();
  }
  void turn_the_page() {
    if (dice_.one_in(3)) {
      std::lock_guard alone(w_.page_lock);
      ++w_.left;
      if (dice_.one_in(4)) w_.lock.try_lock() ? w_.lock.unlock() : void();
      ++w_.right;
    } else {
      std::shared_lock with_others(w_.page_lock, std::defer_lock);
      if (stays_) {
        with_others.lock();
      } else if (!with_others.try_lock_for(patience())) {
        return;
      }
      if (w_.left != w_.right) ++w_.torn;
      if (dice_.one_in(4)) ramie::yield();
    }
  }

  world& w_;
  test::dice dice_;
  const bool stays_;
};

constexpr int players = 4, leavers = 4, turns = 40, tokens_each = 10, letters = 50;

void run_program(const test::setting& how, world& w) {
  test::dice seeds(how.seed);
  std::array<std::uint64_t, 32> seed{};
  for (auto& s : seed) s = seeds();
  ramie::runtime rt(how.options());
  std::thread outside([&] {
    party me(w, seed[0], true);
    me.play(turns);
    for (int i = 0; i < 2 * tokens_each; ++i) me.produce();
  });
  rt.run([&] {
    ramie::nursery stay;
    for (int i = 0; i < players; ++i) {
      stay.spawn([&, i] { party(w, seed[static_cast<std::size_t>(1 + i)], true).play(turns); });
    }
    for (int i = 0; i < 2; ++i) {
      stay.spawn([&, i] { party(w, seed[static_cast<std::size_t>(8 + i)], true).consume(tokens_each); });
    }
    {
      ramie::nursery leave;
      for (int i = 0; i < leavers; ++i) {
        leave.spawn([&, i] {
          party me(w, seed[static_cast<std::size_t>(12 + i)], false);
          me.play(turns / 2);
          me.consume(2);
          me.read(letters * 100);  // for ever, more or less
        });
      }
      for (auto n = seeds.below(20); n > 0; --n) ramie::yield();
      leave.cancel();
      leave.join();
    }
    stay.spawn([&] {  // those who have left may have taken tokens
      party me(w, seed[20], true);
      for (int i = 0; i < leavers * 2; ++i) me.produce();
      for (int i = 0; i < letters; ++i) me.write();
    });
    stay.join();
  });
  outside.join();
  // Everybody has written: two readers take what is left, whoever of the others was told of it.
  const long all = w.delivered;
  rt.run([&] {
    ramie::nursery n;
    for (std::size_t i = 0; i < 2; ++i) n.spawn([&, i] { party(w, seed[24 + i], true).read(all); });
    n.join();
  });
}

void check_books(const world& w) {
  CHECK(w.counted == w.should_be_counted);
  CHECK(w.gate.available() == permits);
  CHECK(w.too_many == 0);
  CHECK(w.produced == w.consumed + w.tokens);
  CHECK(w.consumed >= 2 * tokens_each);
  CHECK(w.torn == 0);
  CHECK(w.left == w.right);
  CHECK(w.read == w.delivered);
}

TEST_CASE("random programs of locks and events keep their books", "[stress][sync]") {
  this_test.for_each_seed(test::scaled(40, 10), 2'000, [&](const test::setting& how) {
    INFO(how);
    world w;
    run_program(how, w);
    check_books(w);
  });
}

}  // namespace stress_sync_programs
