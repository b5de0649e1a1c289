// SPDX-License-Identifier: BSL-1.0
// What channels cost, on one worker and on two, beside Boost.Fiber's, in one interleaved run with the floors.
//
//   channel [rounds]          medians over rounds (default 5)
//   channel --parked [count]  memory and time of fibers parked on recv (default 1,000,000)
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/rows.hpp>

#if defined(HAVE_BOOST_FIBER)
#include <support/boost_fiber.hpp>
#endif

namespace {

using bench::ns_each;
using bench::stopwatch;
using ramie::channel;

template <class F>
double on(unsigned workers, F f) {
  ramie::options o;
  o.workers = workers;
  o.elastic = workers > 1;
  return ramie::run(o, f);
}

double ping_pong(unsigned workers) {
  constexpr long rounds = 300'000;
  return on(workers, [] {
    channel<long> there(0), back(0);
    ramie::nursery n;
    n.spawn([=] {
      for (long v : there) back.send(v);
    });
    const auto start = stopwatch::now();
    for (long i = 0; i < rounds; ++i) {
      there.send(i);
      (void)back.recv();
    }
    const double ns = ns_each(rounds, start);
    there.close();
    n.join();
    return ns;
  });
}

double stream(unsigned workers, std::size_t capacity, int senders, int receivers) {
  const long each = 600'000 / senders;
  return on(workers, [=] {
    channel<long> c(capacity);
    ramie::nursery all;
    const auto start = stopwatch::now();
    for (int r = 0; r < receivers; ++r) {
      all.spawn([=] {
        long sum = 0;
        for (long v : c) sum += v;
        return sum;
      });
    }
    ramie::with_nursery([&](ramie::nursery& n) {
      for (int s = 0; s < senders; ++s) {
        n.spawn([=] {
          for (long i = 0; i < each; ++i) c.send(i);
        });
      }
    });
    c.close();
    all.join();
    return ns_each(each * senders, start);
  });
}

double ring(unsigned workers) {
  constexpr int members = 1'000, laps = 200;
  return on(workers, [] {
    ramie::nursery n;
    std::vector<channel<int>> links;
    for (int i = 0; i < members; ++i) links.emplace_back(0);
    for (int i = 0; i + 1 < members; ++i) {
      n.spawn([in = links[i], out = links[i + 1]] {
        for (int v : in) out.send(v);
        out.close();
      });
    }
    stopwatch::time_point start;
    for (int lap = -1; lap < laps; ++lap) {
      if (lap == 0) start = stopwatch::now();  // everybody has started and waits
      links.front().send(lap);
      (void)links.back().recv();
    }
    const double ns = ns_each(static_cast<long>(members) * laps, start);
    links.front().close();
    n.join();
    return ns;
  });
}

void skynet(const channel<long>& up, long number, long size) {
  if (size == 1) {
    up.send(number);
    return;
  }
  channel<long> c(0);
  ramie::nursery n;
  for (int i = 0; i < 10; ++i) {
    n.spawn([c, first = number + i * (size / 10), size] { skynet(c, first, size / 10); });
  }
  long sum = 0;
  for (int i = 0; i < 10; ++i) sum += *c.recv();
  n.join();
  up.send(sum);
}

double skynet_ms(unsigned workers) {
  return on(workers, [] {
    const auto start = stopwatch::now();
    channel<long> c(1);
    skynet(c, 0, 1'000'000);
    if (c.recv() != 499'999'500'000) std::abort();
    return ns_each(1'000'000, start);
  });
}

double sieve_ms(unsigned workers) {
  constexpr int primes = 2'000;
  return on(workers, [] {
    const auto start = stopwatch::now();
    try {
      ramie::with_nursery([](ramie::nursery& n) {
        channel<int> c(0);
        n.spawn([c] {
          for (int i = 2;; ++i) c.send(i);
        });
        for (int k = 0; k < primes; ++k) {
          const int prime = *c.recv();
          channel<int> next(0);
          n.spawn([c, next, prime] {
            for (int v : c) {
              if (v % prime != 0) next.send(v);
            }
          });
          c = next;
        }
        n.cancel();
      });
    } catch (const ramie::cancelled&) {
    }
    return ns_each(1'000'000, start);
  });
}

double resident_bytes() {
  long pages = 0;
  if (FILE* const f = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(f, "%*s %ld", &pages) != 1) pages = 0;
    std::fclose(f);
  }
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// What the system takes for a page that is touched for the first time: the floor of a parked fiber.
double first_touch(int pages) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto bytes = static_cast<std::size_t>(pages) * page;
  void* const memory =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return 0;
  ::madvise(memory, bytes, MADV_NOHUGEPAGE);
  const auto start = stopwatch::now();
  for (std::size_t at = 0; at < bytes; at += page) static_cast<volatile char*>(memory)[at] = 1;
  const double ns = ns_each(pages, start);
  ::munmap(memory, bytes);
  return ns;
}

void parked(int count) {
  (void)first_touch(count);  // a virtual machine may get its memory only now
  const double touch = first_touch(count);
  ramie::options o;
  o.workers = 1;
  o.elastic = false;
  o.stack_size = 16 * 1024;
  ramie::run(o, [=] {
    ramie::nursery n;
    channel<int> never(0);
    int inside = 0;
    const double before = resident_bytes();
    auto start = stopwatch::now();
    for (int i = 0; i < count; ++i) {
      n.spawn([&inside, never] {
        ++inside;
        (void)never.recv();
      });
      if (i % 1'000 == 999) ramie::yield();
    }
    while (inside != count) ramie::yield();
    const double spawn_park = ns_each(count, start);
    const double bytes = (resident_bytes() - before) / count;
    start = stopwatch::now();
    never.close();
    n.join();
    std::printf(
        "%d parked on recv: %.0f bytes each, spawn + park %.0f ns (first touch of a page %.0f), wake and end %.0f ns\n",
        count, bytes, spawn_park, touch, ns_each(count, start));
  });
}

#if defined(HAVE_BOOST_FIBER)
namespace fibers = boost::fibers;
using stacks = fibers::pooled_fixedsize_stack;

double boost_ping_pong() {
  constexpr long rounds = 100'000;
  fibers::unbuffered_channel<long> there, back;
  fibers::fiber echo(std::allocator_arg, stacks(16 * 1024), [&] {
    for (long v : there) back.push(v);
  });
  const auto start = stopwatch::now();
  long v = 0;
  for (long i = 0; i < rounds; ++i) {
    there.push(i);
    back.pop(v);
  }
  const double ns = ns_each(rounds, start);
  there.close();
  echo.join();
  return ns;
}

double boost_stream(std::size_t capacity, int senders, int receivers) {
  const long each = 200'000 / senders;
  fibers::buffered_channel<long> c(capacity);
  std::vector<fibers::fiber> in, out;
  stacks pool(16 * 1024);
  const auto start = stopwatch::now();
  for (int r = 0; r < receivers; ++r) {
    out.emplace_back(std::allocator_arg, pool, [&] {
      long sum = 0;
      for (long v : c) sum += v;
    });
  }
  for (int s = 0; s < senders; ++s) {
    in.emplace_back(std::allocator_arg, pool, [&c, each] {
      for (long i = 0; i < each; ++i) c.push(i);
    });
  }
  for (auto& f : in) f.join();
  c.close();
  for (auto& f : out) f.join();
  return ns_each(each * senders, start);
}

double boost_ring() {
  constexpr int members = 1'000, laps = 50;
  std::vector<std::unique_ptr<fibers::unbuffered_channel<int>>> links;
  for (int i = 0; i < members; ++i) links.push_back(std::make_unique<fibers::unbuffered_channel<int>>());
  std::vector<fibers::fiber> all;
  stacks pool(16 * 1024);
  for (int i = 0; i + 1 < members; ++i) {
    all.emplace_back(std::allocator_arg, pool, [&in = *links[i], &out = *links[i + 1]] {
      for (int v : in) out.push(v);
      out.close();
    });
  }
  stopwatch::time_point start;
  int v = 0;
  for (int lap = -1; lap < laps; ++lap) {
    if (lap == 0) start = stopwatch::now();
    links.front()->push(lap);
    links.back()->pop(v);
  }
  const double ns = ns_each(static_cast<long>(members) * laps, start);
  links.front()->close();
  for (auto& f : all) f.join();
  return ns;
}
#endif

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::strcmp(argv[1], "--parked") == 0) {
    parked(argc > 2 ? std::atoi(argv[2]) : 1'000'000);
    return 0;
  }
  const int rounds = argc > 1 ? std::max(1, std::atoi(argv[1])) : 5;
  bench::workload boost_pp, boost_128, boost_2, boost_4, boost_r;
#if defined(HAVE_BOOST_FIBER)
  boost_pp = boost_ping_pong;
  boost_128 = [] { return boost_stream(128, 1, 1); };
  boost_2 = [] { return boost_stream(2, 1, 1); };  // its smallest: it holds capacity - 1
  boost_4 = [] { return boost_stream(128, 4, 4); };
  boost_r = boost_ring;
#endif
  std::vector<bench::row> rows;
  rows.push_back({"ping-pong, a round trip", 130, 85, 2, 8, {[] { return ping_pong(1); }, boost_pp}});
  rows.push_back({"the same, two workers", 160, 110, 2, 8, {[] { return ping_pong(2); }}});
  rows.push_back({"capacity 128, 1 to 1", 25, 15, 0, 2, {[] { return stream(1, 128, 1, 1); }, boost_128}});
  rows.push_back({"the same, two workers", 45, 30, 0, 2, {[] { return stream(2, 128, 1, 1); }}});
  rows.push_back({"capacity 1, 1 to 1", 90, 60, 1, 4, {[] { return stream(1, 1, 1, 1); }, boost_2}});
  rows.push_back({"the same, two workers", 120, 80, 1, 4, {[] { return stream(2, 1, 1, 1); }}});
  rows.push_back({"capacity 128, 4 to 4", 32, 20, 0, 2, {[] { return stream(1, 128, 4, 4); }, boost_4}});
  rows.push_back({"the same, two workers", 70, 50, 0, 2, {[] { return stream(2, 128, 4, 4); }}});
  rows.push_back({"ring of 1000, a hop", 70, 45, 1, 4, {[] { return ring(1); }, boost_r}});
  rows.push_back({"the same, two workers", 70, 45, 1, 4, {[] { return ring(2); }}});
  rows.push_back({"skynet, 1M leaves, ms", 300, 200, 1, 4, {[] { return skynet_ms(1); }}});
  rows.push_back({"the same, two workers", 300, 200, 1, 4, {[] { return skynet_ms(2); }}});
  rows.push_back({"sieve, 2000 primes, ms", 200, 150, 1, 4, {[] { return sieve_ms(1); }}});
  rows.push_back({"the same, two workers", 150, 90, 1, 4, {[] { return sieve_ms(2); }}});
  bench::run_table(std::move(rows), {"ramie", "Boost.Fiber"}, rounds);
  return 0;
}
