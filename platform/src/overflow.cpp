// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/overflow.hpp>

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>

#include <ramie/platform/faults.hpp>
#include <ramie/platform/stack_pool.hpp>

namespace ramie::platform {

namespace {

constexpr std::size_t alternate_bytes = 64 * 1024;

std::atomic<overflow_reporter> reporter{nullptr};
std::atomic<bool> passed_on{false};
struct sigaction previous_segv;
struct sigaction previous_bus;

// The kernel reports a guard hit as SEGV_MAPERR like any stray pointer, so the address decides.
void on_fault(int signal, siginfo_t* info, void* machine) {
  const auto report = reporter.load(std::memory_order_acquire);
  const bool overflow = report(info->si_addr, promise_of_guard_at(info->si_addr));
  const struct sigaction& before = signal == SIGBUS ? previous_bus : previous_segv;
  const bool handled = before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN;
  // Passed on once only: a handler that gives the fault back to us must not go round in circles.
  if (!overflow && handled && !passed_on.exchange(true)) {
    if ((before.sa_flags & SA_SIGINFO) != 0) {
      before.sa_sigaction(signal, info, machine);
    } else {
      before.sa_handler(signal);
    }
    passed_on.store(false);
    return;
  }
  ::signal(signal, SIG_DFL);  // returning repeats the fault and ends the process as it should
}

void install(int signal, struct sigaction& previous) noexcept {
  struct sigaction present = {};
  ::sigaction(signal, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == on_fault) return;
  previous = present;
  struct sigaction ours = {};
  ours.sa_sigaction = on_fault;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  ::sigaction(signal, &ours, nullptr);
}

}  // namespace

void watch_for_overflow(overflow_reporter report) noexcept {
  static std::mutex one_at_a_time;
  std::lock_guard hold(one_at_a_time);
  reporter.store(report, std::memory_order_release);
  install(SIGSEGV, previous_segv);
  install(SIGBUS, previous_bus);
}

alternate_stack::alternate_stack() noexcept {
  stack_t present = {};
  if (::sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0) return;
  if (faults::strikes(fault::signal_stack)) return;
  void* const memory = ::mmap(nullptr, alternate_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;  // an overflow then ends the process without its sentence
  stack_t ours = {};
  ours.ss_sp = memory;
  ours.ss_size = alternate_bytes;
  if (::sigaltstack(&ours, nullptr) == 0) {
    memory_ = memory;
  } else {
    ::munmap(memory, alternate_bytes);
  }
}

alternate_stack::~alternate_stack() {
  if (memory_ == nullptr) return;
  stack_t off = {};
  off.ss_flags = SS_DISABLE;
  ::sigaltstack(&off, nullptr);
  ::munmap(memory_, alternate_bytes);
}

}  // namespace ramie::platform
