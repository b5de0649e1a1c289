// SPDX-License-Identifier: BSL-1.0
// The signal handler sets a bit and writes to an eventfd; whoever waits reads that eventfd.
//
// Rejected: signalfd, which wants the signals blocked in every thread, and nobody can do that to threads that exist
// already.
//
// Each `signals` object has a slot: its set of signals, which of them have come (a bit each), and an eventfd that
// counts them (tokens). Slots are reused but never freed, so a handler may walk their list at any time.
//
// Invariants
//   SG1   There are at least as many tokens (in the eventfd, or taken by a waiter that is about to clear a bit, or
//         about to be written by the handler) as bits of `pending`. So no bit stays while somebody waits for a token. A
//         token that finds no bit is dropped: a select has taken that signal without one.
//   PR15  A slot is given up only when no handler uses it, so a handler touches nothing of an object that has been
//         destroyed, and the eventfd that it writes to is this object's:
//
//       handler                                   destructor of the object
//       1. ++visitors                             1. wanted = 0
//       2. if `wanted` has the signal:            2. wait until visitors == 0
//          set its bit, write a token             3. close the eventfd
//       3. --visitors
//       One of the two first steps comes before the other, and steps 1 and 2 are sequentially consistent.
//
// The atomics are std::atomic: the explorer does not run signal handlers.
#include <ramie/signals.hpp>

#include <sys/epoll.h>
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
#include "../sigpipe.hpp"
#include "../watcher.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

const wait_reason waits_for_signal{"signals"};

using signal_set = std::uint64_t;
constexpr int last_signal = 64;
static_assert(std::atomic<signal_set>::is_always_lock_free);

constexpr signal_set bit_of(int number) noexcept {
  return signal_set{1} << (number - 1);
}

struct signal_slot {
  std::atomic<signal_set> wanted{0};
  std::atomic<signal_set> pending{0};
  std::atomic<std::uint32_t> visitors{0};
  std::atomic<int> bell{-1};
  signal_slot* next = nullptr;  // before it is listed
  bool in_use = true;            // under the lock
};

std::atomic<signal_slot*> first_slot{nullptr};

// The handler. Runs on any thread at any time, also on one that holds the lock below.
void note_signal(int number) noexcept {
  const int error = errno;
  for (auto* slot = first_slot.load(std::memory_order_acquire); slot != nullptr; slot = slot->next) {
    slot->visitors.fetch_add(1, std::memory_order_seq_cst);
    if ((slot->wanted.load(std::memory_order_seq_cst) & bit_of(number)) != 0 &&
        (slot->pending.fetch_or(bit_of(number), std::memory_order_acq_rel) & bit_of(number)) == 0) {
      (void)!::eventfd_write(slot->bell.load(std::memory_order_relaxed), 1);
    }
    slot->visitors.fetch_sub(1, std::memory_order_seq_cst);
  }
  errno = error;
}

// How many objects want each signal, and the disposition from before the first of them.
class signal_table {
 public:
  static signal_table& only() {
    static signal_table& table = *new signal_table;  // not destroyed: handlers may run until the process ends
    return table;
  }

  signal_slot& take_slot() {
    const std::lock_guard hold(lock_);
    for (auto* slot = first_slot.load(std::memory_order_relaxed); slot != nullptr; slot = slot->next) {
      if (!std::exchange(slot->in_use, true)) return *slot;
    }
    auto* const fresh = new signal_slot;
    fresh->next = first_slot.load(std::memory_order_relaxed);
    first_slot.store(fresh, std::memory_order_release);  // pairs with the acquire in note_signal
    return *fresh;
  }
  void give_up(signal_slot& slot) noexcept {
    const std::lock_guard hold(lock_);
    slot.in_use = false;
  }

  // Installs the handler, unless it is installed. 0, or -errno.
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
  // If pipes were made while SIGPIPE had our handler, ignore_sigpipe() could do nothing: SIGPIPE is to be ignored now.
  static void restore(int number, struct sigaction before) noexcept {
    const bool ends_us = (before.sa_flags & SA_SIGINFO) == 0 && before.sa_handler == SIG_DFL;
    if (number == SIGPIPE && ends_us && sigpipe_is_unwanted()) before.sa_handler = SIG_IGN;
    (void)::sigaction(number, &before, nullptr);
    if (number == SIGPIPE && sigpipe_is_unwanted()) ignore_sigpipe();  // if it was called since the line above
  }

  std::mutex lock_;
  std::array<entry, last_signal + 1> entries_;
};

usage_error unusable(int number, const char* why) {
  return usage_error("ramie: signals::signals: signal " + std::to_string(number) + why);
}

void must_be_awaitable(int number) {
  for (const int hopeless : {SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) {
    if (number == hopeless) throw unusable(number, " can't be waited for. Choose another.");
  }
  if (number < 1 || number > last_signal) throw unusable(number, " does not exist. Name one of 1 to 64.");
}

}  // namespace

class signal_watch final : private watched {
 public:
  explicit signal_watch(std::initializer_list<int> numbers) {
    if (numbers.size() == 0) {
      throw usage_error("ramie: signals::signals: an empty list would wait for ever. Name at least one signal.");
    }
    for (const int number : numbers) must_be_awaitable(number);
    const auto fd = outcome_of([] { return ::eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC | EFD_NONBLOCK); });
    throw_if(error_of(fd), "ramie: signals::signals");
    bell_ = open_descriptor::adopt(static_cast<int>(fd));
    slot_ = &signal_table::only().take_slot();
    slot_->bell.store(static_cast<int>(fd), std::memory_order_relaxed);
    slot_->pending.store(0, std::memory_order_relaxed);
    signal_set wanted = 0;
    for (const int number : numbers) wanted |= bit_of(number);
    // After the eventfd is set: pairs with the load in note_signal. Before the handlers are installed, so that no
    // signal is missed.
    slot_->wanted.store(wanted, std::memory_order_seq_cst);
    for (int number = 1; number <= last_signal; ++number) {
      if ((wanted & bit_of(number)) == 0) continue;
      if (const auto result = signal_table::only().install(number); result < 0) {
        leave();
        throw_if(error_of(result), "ramie: signals::signals");
      }
      installed_ |= bit_of(number);
    }
  }
  ~signal_watch() {
    unwatch(watch_number_);
    leave();
  }
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
      // None: a select was faster, or a child process that was forked has rung.
      if (const int number = take_one()) return number;
    }
  }

  // As a source of select: watched_ready_ops. Throws std::system_error, std::bad_alloc.
  void begin_watching() {
    const std::lock_guard hold(watch_lock_);
    // Every token is an event of its own, though nobody has taken the one before.
    if (watch_number_ == 0) watch_number_ = watch(bell_->number(), EPOLLIN | EPOLLET, *this, "ramie: on_signal");
  }
  using taken = int;
  // True: `number` is a signal that has come; else it is 0.
  [[nodiscard]] bool try_take(int& number) noexcept {
    number = take_one();
    // Its token, if the handler has put it there; else it stays and finds no bit.
    std::uint64_t token = 0;
    if (number != 0) (void)bell_->with_fd([&](int fd) { return static_cast<int>(::read(fd, &token, sizeof token)); });
    return number != 0;
  }
  [[nodiscard]] bool publish(waiter& node) noexcept {
    selects_.add(node);
    // Listed first: the event of a signal that comes later finds the node.
    if (slot_->pending.load(std::memory_order_seq_cst) == 0) return true;
    selects_.remove(node);
    return false;
  }
  void unpublish(waiter& node) noexcept { selects_.remove(node); }

 private:
  // All look: they may be fewer than the signals that this event stands for.
  [[nodiscard]] then on_ready() noexcept override {
    selects_.wake_all();
    return then::keep;
  }

  // Takes a bit; 0: there is none. Begins behind the number that was taken last: one that comes all the time must not
  // keep the others waiting.
  int take_one() noexcept {
    auto pending = slot_->pending.load(std::memory_order_acquire);
    while (pending != 0) {
      const int from = last_taken_.load(std::memory_order_relaxed);
      const int number = (std::countr_zero(std::rotr(pending, from)) + from) % last_signal + 1;
      if (slot_->pending.compare_exchange_weak(pending, pending & ~bit_of(number), std::memory_order_acq_rel)) {
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
    slot_->wanted.store(0, std::memory_order_seq_cst);
    while (slot_->visitors.load(std::memory_order_seq_cst) != 0) std::this_thread::yield();
    signal_table::only().give_up(*slot_);
  }

  descriptor_ref bell_;
  signal_slot* slot_ = nullptr;
  signal_set installed_ = 0;
  std::atomic<int> last_taken_{0};
  recheck_list selects_;
  std::mutex watch_lock_;           // of the next field; not held where on_ready runs
  std::uint64_t watch_number_ = 0;  // 0: no select has waited for it
};

ready_source signal_source(signal_watch& from, int& number) noexcept {
  return {&watched_ready_ops<signal_watch>, &from, &number, 0};
}

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

signals::signals(std::initializer_list<int> numbers) : it_(std::make_unique<io_internal::signal_watch>(numbers)) {}
signals::~signals() = default;

std::optional<int> signals::wait(std::error_code& ec, deadline until) {
  const auto result = it_->wait(until);
  ec = io_internal::error_of(result == -ETIMEDOUT ? 0 : result);
  return result > 0 ? std::optional(static_cast<int>(result)) : std::nullopt;
}
std::optional<int> signals::wait(deadline until) {
  return io_internal::or_throw("ramie: signals::wait", [&](auto& ec) { return wait(ec, until); });
}
int signals::wait(std::error_code& ec) {
  return wait(ec, deadline()).value_or(0);
}
int signals::wait() {
  return *wait(deadline());
}

}  // namespace ramie::inline v0
