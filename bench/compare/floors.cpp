// SPDX-License-Identifier: BSL-1.0
// The floors of the machine: what nobody's runtime can go under. The goals are scaled by the first two.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <boost/context/detail/fcontext.hpp>

#include <compare/program.hpp>

namespace {

using namespace compare;

// The n-th processor that this process may use.
void stay_on(unsigned n) {
  static const cpu_set_t allowed = [] {
    cpu_set_t all;
    ::sched_getaffinity(0, sizeof all, &all);
    return all;
  }();
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || n-- > 0) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ::sched_setaffinity(0, sizeof one, &one);
    return;
  }
  fail("takes two processors");
}

void keep(auto& v) {
  asm volatile("" : "+m"(v) : : "memory");
}

result raw_switch(unsigned, const sizes& s) {
  namespace context = boost::context::detail;
  const long count = s["count"];
  static char stack[64 * 1024];
  context::transfer_t there{context::make_fcontext(stack + sizeof stack, sizeof stack,
                                                   [](context::transfer_t t) {
                                                     for (;;) t = context::jump_fcontext(t.fctx, nullptr);
                                                   }),
                            nullptr};
  const auto start = stopwatch::now();
  for (long i = 0; i < count / 2; ++i) there = context::jump_fcontext(there.fctx, nullptr);
  return {ns_each(count, start), "ns"};
}

result rmw(unsigned, const sizes& s) {
  const long count = s["count"];
  std::atomic<long> word{0};
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) word.fetch_add(1);
  return {ns_each(count, start), "ns"};
}

result cas(unsigned, const sizes& s) {
  const long count = s["count"];
  std::atomic<long> word{0};
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) {
    long expected = i;
    word.compare_exchange_strong(expected, i + 1);
  }
  return {ns_each(count, start), "ns"};
}

result malloc_free(unsigned, const sizes& s) {
  const long count = s["count"];
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) {
    void* p = std::malloc(64);
    keep(p);
    std::free(p);
  }
  return {ns_each(count, start), "ns"};
}

result cache_line(unsigned, const sizes& s) {
  const long rounds = s["count"];
  alignas(128) std::atomic<long> line{0};
  std::thread other([&] {
    stay_on(1);
    for (long i = 0; i < rounds; ++i) {
      while (line.load(std::memory_order_acquire) != 2 * i + 1) {
      }
      line.store(2 * i + 2, std::memory_order_release);
    }
  });
  stay_on(0);
  const auto start = stopwatch::now();
  for (long i = 0; i < rounds; ++i) {
    line.store(2 * i + 1, std::memory_order_release);
    while (line.load(std::memory_order_acquire) != 2 * i + 2) {
    }
  }
  const double ns = ns_each(rounds, start);
  other.join();
  return {ns, "ns"};
}

result cheapest_syscall(unsigned, const sizes& s) {
  const long count = s["count"];
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) ::syscall(SYS_getppid);
  return {ns_each(count, start), "ns"};
}

template <unsigned OtherCpu>
result futex_ping_pong(unsigned, const sizes& s) {
  const long rounds = s["count"];
  std::atomic<std::uint32_t> word{0};
  const auto pass = [&](std::uint32_t from, std::uint32_t to) {
    while (word.load() != from) ::syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, to, nullptr, nullptr, 0);
    word.store(to);
    ::syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  };
  std::thread other([&] {
    stay_on(OtherCpu);
    for (long i = 0; i < rounds; ++i) pass(1, 0);
  });
  stay_on(0);
  const auto start = stopwatch::now();
  for (long i = 0; i < rounds; ++i) pass(0, 1);
  const double ns = ns_each(rounds, start);
  other.join();
  return {ns / 1e3, "us"};
}

// Twice: a virtual machine may get its memory from the host only at the first.
result first_touch(unsigned, const sizes& s) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto bytes = static_cast<std::size_t>(s["pages"]) * page;
  double ns = 0;
  for (int turn = 0; turn < 2; ++turn) {
    void* const memory =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) fail("mmap");
    ::madvise(memory, bytes, MADV_NOHUGEPAGE);
    const auto start = stopwatch::now();
    for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
    ns = ns_each(s["pages"], start);
    ::munmap(memory, bytes);
  }
  return {ns, "ns"};
}

result map_stack(unsigned, const sizes& s) {
  const long count = s["count"];
  constexpr std::size_t bytes = 64 * 1024;
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) {
    void* const stack =
        ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (stack == MAP_FAILED) fail("mmap");
    static_cast<volatile char*>(stack)[bytes - 1] = 1;
    ::munmap(stack, bytes);
  }
  return {ns_each(count, start) / 1e3, "us"};
}

result thread_create(unsigned, const sizes& s) {
  const long count = s["count"];
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) std::thread([] {}).join();
  return {ns_each(count, start) / 1e3, "us"};
}

result clock_read(unsigned, const sizes& s) {
  const long count = s["count"];
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) {
    auto now = stopwatch::now();
    keep(now);
  }
  return {ns_each(count, start), "ns"};
}

[[gnu::noinline]] long call_fib(int n) {
  return n < 2 ? n : call_fib(n - 1) + call_fib(n - 2);
}

// A call for every spawn that fork-join fib makes.
result serial_fib_call(unsigned, const sizes& s) {
  const int n = static_cast<int>(s["n"]);
  const auto start = stopwatch::now();
  const long found = call_fib(n);
  const double ns = ns_each(spawns_of_fib(n), start);
  require(found == serial_fib(n), "fib");
  return {ns, "ns"};
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {
      {"switch", 1, raw_switch},
      {"rmw", 1, rmw},
      {"cas", 1, cas},
      {"malloc", 1, malloc_free},
      {"line", 1, cache_line},
      {"syscall", 1, cheapest_syscall},
      {"futex-one-core", 1, futex_ping_pong<0>},
      {"futex-two-cores", 1, futex_ping_pong<1>},
      {"first-touch", 1, first_touch},
      {"map-stack", 1, map_stack},
      {"thread", 1, thread_create},
      {"clock", 1, clock_read},
      {"fib-call", 1, serial_fib_call},
  };
  return run_program(argc, argv, all);
}
