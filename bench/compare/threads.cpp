// SPDX-License-Identifier: BSL-1.0
// Plain threads in bench/compare: what all of this is measured against by those who wonder whether they need it. As
// many processors as there are "workers"; a futex word or a mutex with condition variables where fibers would use a
// channel.
#include <fcntl.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include <compare/program.hpp>
#include <compare/reads.hpp>

namespace {

using namespace compare;

// Threads inherit it.
void use_processors(unsigned count) {
  cpu_set_t allowed, mine;
  CPU_ZERO(&mine);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  for (unsigned cpu = 0; cpu < CPU_SETSIZE && count > 0; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    CPU_SET(cpu, &mine);
    --count;
  }
  ::sched_setaffinity(0, sizeof mine, &mine);
}

// A word that says whose turn it is.
class turn {
 public:
  void give(std::uint32_t to) {
    word_.store(to, std::memory_order_release);
    ::syscall(SYS_futex, &word_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  }
  void await(std::uint32_t who) {
    for (std::uint32_t now = word_.load(std::memory_order_acquire); now != who;
         now = word_.load(std::memory_order_acquire)) {
      ::syscall(SYS_futex, &word_, FUTEX_WAIT_PRIVATE, now, nullptr, nullptr, 0);
    }
  }

 private:
  std::atomic<std::uint32_t> word_{0};
};

class queue {
 public:
  explicit queue(std::size_t capacity) : capacity_(capacity) {}
  void send(long v) {
    std::unique_lock hold(lock_);
    room_.wait(hold, [&] { return values_.size() < capacity_; });
    values_.push_back(v);
    hold.unlock();
    some_.notify_one();
  }
  std::optional<long> recv() {
    std::unique_lock hold(lock_);
    some_.wait(hold, [&] { return !values_.empty() || closed_; });
    if (values_.empty()) return {};
    const long v = values_.front();
    values_.pop_front();
    hold.unlock();
    room_.notify_one();
    return v;
  }
  void close() {
    {
      std::lock_guard hold(lock_);
      closed_ = true;
    }
    some_.notify_all();
  }

 private:
  const std::size_t capacity_;
  std::mutex lock_;
  std::condition_variable room_, some_;
  std::deque<long> values_;
  bool closed_ = false;
};

result spawn_join(unsigned workers, const sizes& s) {
  use_processors(workers);
  const long at_once = s["at_once"], tasks = s["tasks"];
  std::vector<std::thread> all;
  const auto start = stopwatch::now();
  for (long done = 0; done < tasks; done += at_once) {
    all.clear();
    for (long i = 0; i < at_once; ++i) all.emplace_back([] {});
    for (auto& t : all) t.join();
  }
  return {ns_each(tasks, start), "ns"};
}

result ping_pong(unsigned workers, const sizes& s) {
  use_processors(workers);
  const long rounds = s["rounds"];
  turn t;
  long value = 0;
  std::thread echo([&] {
    for (long i = 0; i < rounds; ++i) {
      t.await(1);
      ++value;
      t.give(0);
    }
  });
  const auto start = stopwatch::now();
  for (long i = 0; i < rounds; ++i) {
    t.give(1);
    t.await(0);
  }
  const double ns = ns_each(rounds, start);
  echo.join();
  require(value == rounds, "echo");
  return {ns, "ns"};
}

result stream(unsigned workers, const sizes& s) {
  use_processors(workers);
  const long senders = s["senders"], receivers = s["receivers"], each = s["messages"] / senders;
  queue q(static_cast<std::size_t>(s["capacity"]));
  std::atomic<long> total{0};
  std::vector<std::thread> in, out;
  const auto start = stopwatch::now();
  for (long r = 0; r < receivers; ++r) {
    out.emplace_back([&] {
      long sum = 0;
      while (const auto v = q.recv()) sum += *v;
      total += sum;
    });
  }
  for (long k = 0; k < senders; ++k) {
    in.emplace_back([&q, each] {
      for (long i = 0; i < each; ++i) q.send(i);
    });
  }
  for (auto& t : in) t.join();
  q.close();
  for (auto& t : out) t.join();
  const double ns = ns_each(each * senders, start);
  require(total == senders * (each * (each - 1) / 2), "sum of messages");
  return {ns, "ns"};
}

result wake(unsigned, const sizes& s) {
  const long rounds = s["rounds"];
  std::vector<long> late;
  std::atomic<long> called{0};
  turn t;
  std::thread caller([&] {
    for (long i = 0; i < rounds; ++i) {
      let_all_sleep();
      called = now_ns();
      t.give(1);
      while (called != 0) std::this_thread::yield();
    }
  });
  for (long i = 0; i < rounds; ++i) {
    t.await(1);
    late.push_back(now_ns() - called);
    t.give(0);
    called = 0;
  }
  caller.join();
  return percentiles(std::move(late));
}

// A thread a processor: 64 of them would only show how the system shares those out.
result mutex_shared(unsigned workers, const sizes& s) {
  use_processors(workers);
  const long each = s["fibers"] * s["each"] / workers;
  std::mutex m;
  long counter = 0;
  std::vector<std::thread> all;
  const auto start = stopwatch::now();
  for (unsigned i = 0; i < workers; ++i) {
    all.emplace_back([&] {
      for (long k = 0; k < each; ++k) {
        std::lock_guard hold(m);
        ++counter;
      }
    });
  }
  for (auto& t : all) t.join();
  const double ns = ns_each(each * workers, start);
  require(counter == each * workers, "counter");
  return {ns, "ns"};
}

// By a second thread: as long as there is only one, glibc's mutex is no atomic.
result mutex_alone(unsigned, const sizes& s) {
  const long count = s["count"];
  double ns = 0;
  std::thread([&] {
    std::mutex m;
    const auto start = stopwatch::now();
    for (long i = 0; i < count; ++i) {
      m.lock();
      m.unlock();
    }
    ns = ns_each(count, start);
  }).join();
  return {ns, "ns"};
}

// One after the other: pread neither waits nor gains by company while all is in the page cache.
result file_reads(unsigned, const sizes& s) {
  const long count = s["count"];
  const int file = ::open(file_to_read().c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail("can't open the file to read");
  alignas(64) char data[read_size];
  places_to_read where(0, s["bytes"] / read_size);
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) require(::pread(file, data, read_size, where.next()) == read_size, "a short read");
  return {ns_each(count, start), "ns"};
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {
      {"spawn-join", 2, spawn_join}, {"ping-pong", 2, ping_pong},     {"channel", 2, stream},   {"wake", 1, wake},
      {"mutex", 2, mutex_shared},    {"mutex-alone", 1, mutex_alone}, {"reads", 1, file_reads},
  };
  return run_program(argc, argv, all);
}
