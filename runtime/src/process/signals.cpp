// SPDX-License-Identifier: BSL-1.0
// A handler that only notes and rings, and whoever waits reads the bell.
//
// Why no signalfd: it wants the signals blocked in every thread, and nobody can do that to threads that are there
// already.
//
// There is a place for each `signals` object: its set of signals, which of them came (a bit each), and an eventfd that
// counts them. Places are never freed, only used again, so a handler may walk the list whenever it happens to run.
//
// Invariants
//   G1  Each bit of `pending` has one token in the eventfd, or its handler is about to put it there, or a waiter has
//   taken
//       it and is about to clear a bit. So who has a token finds a bit, whoever else waits.
//   G2  A place is given up only when no handler is at it, so the eventfd that a handler writes to is this object's:
//
//       handler                                   the object goes
//       1. ++visitors                             1. wanted = 0
//       2. does `wanted` hold the signal?         2. visitors == 0? else look again
//          then note it, ring                     3. close the eventfd
//       3. --visitors
//       Of the two first steps one comes before the other, and all four are sequentially consistent.
//
// Atomics are the standard's own, for a handler is no place to be explored.
#include <ramie/signals.hpp>

#include <sys/eventfd.h>

#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <mutex>
#include <string>
#include <thread>

#include <ramie/error.hpp>
#include <ramie/runtime/io.hpp>

#include "../fs/system.hpp"

namespace ramie::detail {

namespace {

const wait_reason waits_for_signal{"signals"};

using signal_set = std::uint64_t;
constexpr int last_signal = 64;
static_assert(std::atomic<signal_set>::is_always_lock_free);

constexpr signal_set bit_of(int number) noexcept {
  return signal_set{1} << (number - 1);
}

struct signal_place {
  std::atomic<signal_set> wanted{0};
  std::atomic<signal_set> pending{0};
  std::atomic<std::uint32_t> visitors{0};
  std::atomic<int> bell{-1};
  signal_place* next = nullptr;  // before it is listed
  bool taken = true;             // under the lock
};

std::atomic<signal_place*> first_place{nullptr};

// Runs on any thread at any moment, also while one holds the lock below.
void note_signal(int number) noexcept {
  const int error = errno;
  for (auto* place = first_place.load(std::memory_order_acquire); place != nullptr; place = place->next) {
    place->visitors.fetch_add(1, std::memory_order_seq_cst);
    if ((place->wanted.load(std::memory_order_seq_cst) & bit_of(number)) != 0 &&
        (place->pending.fetch_or(bit_of(number), std::memory_order_acq_rel) & bit_of(number)) == 0) {
      (void)!::eventfd_write(place->bell.load(std::memory_order_relaxed), 1);
    }
    place->visitors.fetch_sub(1, std::memory_order_seq_cst);
  }
  errno = error;
}

// Who wants what, and what was there before.
class signal_table {
 public:
  static signal_table& only() {
    static signal_table& table = *new signal_table;  // handlers may run until the very end
    return table;
  }

  signal_place& take_place() {
    const std::lock_guard hold(lock_);
    for (auto* place = first_place.load(std::memory_order_relaxed); place != nullptr; place = place->next) {
      if (!std::exchange(place->taken, true)) return *place;
    }
    auto* const fresh = new signal_place;
    fresh->next = first_place.load(std::memory_order_relaxed);
    first_place.store(fresh, std::memory_order_release);  // pairs with the acquire in note_signal
    return *fresh;
  }
  void give_up(signal_place& place) noexcept {
    const std::lock_guard hold(lock_);
    place.taken = false;
  }

  // The handler is in force from here on. -errno, or 0.
  std::int64_t install(int number) noexcept {
    const std::lock_guard hold(lock_);
    entry& e = entries_[static_cast<std::size_t>(number)];
    if (e.users == 0) {
      struct sigaction ours {};
      ours.sa_handler = note_signal;
      ours.sa_flags = SA_RESTART | SA_ONSTACK;  // a fiber's stack may be almost used up
      (void)::sigfillset(&ours.sa_mask);
      if (::sigaction(number, &ours, &e.before) != 0) return -errno;
    }
    ++e.users;
    return 0;
  }
  void remove(int number) noexcept {
    const std::lock_guard hold(lock_);
    entry& e = entries_[static_cast<std::size_t>(number)];
    if (--e.users != 0) return;
    struct sigaction now {};
    if (::sigaction(number, nullptr, &now) != 0) return;
    if ((now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == note_signal) restore(number, e.before);
  }

 private:
  struct entry {
    unsigned users = 0;
    struct sigaction before {};
  };
  // Pipes were made while SIGPIPE had our handler: they found nothing to ignore.
  static void restore(int number, struct sigaction before) noexcept {
    const bool ends_us = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    if (number == SIGPIPE && ends_us && sigpipe_is_unwanted()) before.sa_handler = SIG_IGN;
    (void)::sigaction(number, &before, nullptr);
    if (number == SIGPIPE && sigpipe_is_unwanted()) ignore_sigpipe();  // since then
  }

  std::mutex lock_;
  std::array<entry, last_signal + 1> entries_;
};

void must_be_awaitable(int number) {
  for (const int hopeless : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (number == hopeless) throw usage_error("ramie: signal " + std::to_string(number) + " can't be waited for.");
  }
  if (number < 1 || number > last_signal) throw usage_error("ramie: " + std::to_string(number) + " is no signal.");
}

}  // namespace

class signal_watch {
 public:
  explicit signal_watch(std::initializer_list<int> numbers) {
    if (numbers.size() == 0) throw usage_error("ramie: signals for no signal would wait for ever. Name at least one.");
    for (const int number : numbers) must_be_awaitable(number);
    const auto fd = outcome_of([] { return ::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK); });
    throw_if(error_of(fd), "signals");
    bell_ = open_descriptor::adopt(static_cast<int>(fd));
    place_ = &signal_table::only().take_place();
    place_->bell.store(static_cast<int>(fd), std::memory_order_relaxed);
    place_->pending.store(0, std::memory_order_relaxed);
    signal_set wanted = 0;
    for (const int number : numbers) wanted |= bit_of(number);
    // The bell is there: pairs with the load in note_signal. Before the handlers, so that none comes in vain.
    place_->wanted.store(wanted, std::memory_order_seq_cst);
    for (int number = 1; number <= last_signal; ++number) {
      if ((wanted & bit_of(number)) == 0) continue;
      if (const auto result = signal_table::only().install(number); result < 0) {
        leave();
        throw_if(error_of(result), "signals");
      }
      installed_ |= bit_of(number);
    }
  }
  ~signal_watch() { leave(); }
  signal_watch(const signal_watch&) = delete;
  signal_watch& operator=(const signal_watch&) = delete;

  // The signal's number or -errno.
  std::int32_t wait(deadline until) {
    for (;;) {
      std::uint64_t token = 0;
      platform::io_operation op;
      op.code = platform::io_code::read;
      op.memory = &token;
      op.count = sizeof token;
      const auto result = bell_->perform(op, waits_for_signal, until.when());
      if (result < 0) return result;
      if (const int number = take_one()) return number;  // none: a child process that was forked has rung
    }
  }

 private:
  // With a token. Not always the same first: one that comes all the time would keep the others waiting.
  int take_one() noexcept {
    auto pending = place_->pending.load(std::memory_order_acquire);
    while (pending != 0) {
      const int from = last_taken_.load(std::memory_order_relaxed);
      const int number = (std::countr_zero(std::rotr(pending, from)) + from) % last_signal + 1;
      if (place_->pending.compare_exchange_weak(pending, pending & ~bit_of(number), std::memory_order_acq_rel)) {
        last_taken_.store(number % last_signal, std::memory_order_relaxed);
        return number;
      }
    }
    return 0;
  }

  void leave() noexcept {
    for (int number = 1; number <= last_signal; ++number) {
      if ((installed_ & bit_of(number)) != 0) signal_table::only().remove(number);
    }
    place_->wanted.store(0, std::memory_order_seq_cst);
    while (place_->visitors.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    signal_table::only().give_up(*place_);
  }

  descriptor_ref bell_;
  signal_place* place_ = nullptr;
  signal_set installed_ = 0;
  std::atomic<int> last_taken_{0};
};

}  // namespace ramie::detail

namespace ramie::inline v0 {

signals::signals(std::initializer_list<int> numbers) : it_(std::make_unique<detail::signal_watch>(numbers)) {}
signals::~signals() = default;

int signals::wait(std::error_code& ec, deadline until) {
  return static_cast<int>(detail::value_or_error(it_->wait(until), ec));
}
int signals::wait(deadline until) {
  return static_cast<int>(detail::value_or_throw(it_->wait(until), "signals::wait"));
}

}  // namespace ramie::inline v0
