// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/overflow.hpp>

#include <signal.h>
#include <sys/mman.h>

#include <atomic>
#include <mutex>

#include <ramie/platform/stack_pool.hpp>

namespace ramie::platform {

namespace {

constexpr std::size_t alternate_bytes = 64 * 1024;

std::atomic<overflow_reporter> reporter{nullptr};
struct sigaction previous_segv;
struct sigaction previous_bus;

// The kernel reports a guard hit as SEGV_MAPERR like any stray pointer, so the address decides.
void on_fault(int signal, siginfo_t* info, void* machine) {
  const std::size_t promised = promise_of_guard_at(info->si_addr);
  if (promised != 0) reporter.load(std::memory_order_acquire)(promised);
  const struct sigaction& before = signal == SIGBUS ? previous_bus : previous_segv;
  if (promised == 0 && (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction != nullptr) {
    before.sa_sigaction(signal, info, machine);
    return;
  }
  if (promised == 0 && before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
    before.sa_handler(signal);
    return;
  }
  ::signal(signal, SIG_DFL);  // returning repeats the fault and ends the process as it should
}

}  // namespace

void watch_for_overflow(overflow_reporter report) noexcept {
  static std::once_flag once;
  std::call_once(once, [report] {
    reporter.store(report, std::memory_order_release);
    struct sigaction action = {};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigemptyset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &previous_segv);
    ::sigaction(SIGBUS, &action, &previous_bus);
  });
}

alternate_stack::alternate_stack() noexcept {
  stack_t present = {};
  if (::sigaltstack(nullptr, &present) == 0 && (present.ss_flags & SS_DISABLE) == 0) return;
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
