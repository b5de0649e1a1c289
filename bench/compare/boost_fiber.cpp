// SPDX-License-Identifier: BSL-1.0
// Boost.Fiber's side of bench/compare, as its users would write it fast:
//   - 16 KiB stacks from a pool. Its own pooled_fixedsize_stack is not for several threads; there each thread keeps a
//     list of the stacks that fibers left on it.
//   - One worker is round robin, its default, except in fork-join: first in, first out makes that breadth first (10 GB
//     for fib(30)), so there the program brings a last-in-first-out algorithm, as its customization guide shows.
//   - Two workers are its work_stealing. In fork-join it may not suspend its threads: nobody tells a suspended one of
//     work that it could steal. Between channels it may: a spinning one only disturbs.
//   - Its buffered_channel holds one less than its capacity, a power of two: capacity 1 is its 2.
#include <atomic>
#include <memory>

#include <compare/boost_fiber.hpp>
#include <compare/sleeps.hpp>

namespace {

using namespace compare;

result yields(unsigned workers, const sizes& s) {
  const long count = s["fibers"], turns = s["turns"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    std::vector<fibers::fiber> all;
    all.reserve(static_cast<std::size_t>(count));
    const auto start = stopwatch::now();
    for (long i = 0; i < count; ++i) {
      all.emplace_back(std::allocator_arg, stacks, [turns] {
        for (long k = 0; k < turns; ++k) boost::this_fiber::yield();
      });
    }
    for (auto& f : all) f.join();
    return {ns_each(count * turns, start), "ns"};
  });
}

void batch(long at_once, auto& stacks, std::vector<fibers::fiber>& all) {
  all.clear();
  for (long i = 0; i < at_once; ++i) all.emplace_back(std::allocator_arg, stacks, [] {});
  for (auto& f : all) f.join();
}

result spawn_join(unsigned workers, const sizes& s) {
  const long at_once = s["at_once"], tasks = s["tasks"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    std::vector<fibers::fiber> all;
    batch(at_once, stacks, all);
    const auto start = stopwatch::now();
    for (long done = 0; done < tasks; done += at_once) batch(at_once, stacks, all);
    return {ns_each(tasks, start), "ns"};
  });
}

result spawn_all(unsigned workers, const sizes& s) {
  const long tasks = s["tasks"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    std::vector<fibers::fiber> all;
    const auto start = stopwatch::now();
    batch(tasks, stacks, all);
    return {ns_each(tasks, start), "ns", {{"peak_mb", peak_mb()}}};
  });
}

long fork_fib(int n, auto& stacks) {
  if (n < 2) return n;
  long half = 0;
  fibers::fiber f(std::allocator_arg, stacks, [&] { half = fork_fib(n - 1, stacks); });
  const long other = fork_fib(n - 2, stacks);
  f.join();
  return half + other;
}

result fib(unsigned workers, const sizes& s) {
  const int n = static_cast<int>(s["n"]);
  return on<shape::fork_join>(workers, [=](auto stacks) -> result {
    return timed_fib(n, [&](int k) { return fork_fib(k, stacks); });
  });
}

long tree(long first, long size, auto& stacks) {
  if (size == 1) return first;
  long sums[10];
  fibers::fiber children[10];
  for (int i = 0; i < 10; ++i) {
    children[i] = fibers::fiber(std::allocator_arg, stacks, [&sums, &stacks, first, size, i] {
      sums[i] = tree(first + i * (size / 10), size / 10, stacks);
    });
  }
  long sum = 0;
  for (int i = 0; i < 10; ++i) {
    children[i].join();
    sum += sums[i];
  }
  return sum;
}

void channel_tree(auto& up, long first, long size, auto& stacks) {
  if (size == 1) {
    up.push(first);
    return;
  }
  fibers::unbuffered_channel<long> c;
  fibers::fiber children[10];
  for (int i = 0; i < 10; ++i) {
    children[i] = fibers::fiber(std::allocator_arg, stacks, [&c, &stacks, first, size, i] {
      channel_tree(c, first + i * (size / 10), size / 10, stacks);
    });
  }
  long sum = 0;
  for (int i = 0; i < 10; ++i) sum += c.value_pop();
  for (auto& f : children) f.join();
  up.push(sum);
}

long skynet(bool by_join, long leaves, auto& stacks) {
  if (by_join) return tree(0, leaves, stacks);
  fibers::buffered_channel<long> c(2);
  channel_tree(c, 0, leaves, stacks);
  return c.value_pop();
}

template <bool ByJoin>
result skynet(unsigned workers, const sizes& s) {
  const long leaves = s["leaves"];
  return on<shape::fork_join>(workers, [=](auto stacks) -> result {
    return timed_skynet(leaves, [&](long size) { return skynet(ByJoin, size, stacks); });
  });
}

result ping_pong(unsigned workers, const sizes& s) {
  const long rounds = s["rounds"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    fibers::unbuffered_channel<long> there, back;
    fibers::fiber echo(std::allocator_arg, stacks, [&] {
      for (long v : there) back.push(v);
    });
    const double ns = round_trip_ns(rounds, [&](long i) {
      there.push(i);
      require(back.value_pop() == i, "echo");
    });
    there.close();
    echo.join();
    return {ns, "ns"};
  });
}

result stream(unsigned workers, const sizes& s) {
  const long senders = s["senders"], receivers = s["receivers"], each = s["messages"] / senders;
  const auto capacity = static_cast<std::size_t>(std::max(s["capacity"], 2L));
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    fibers::buffered_channel<long> c(capacity);
    std::vector<fibers::fiber> in, out;
    std::atomic<long> total{0};
    const auto start = stopwatch::now();
    for (long r = 0; r < receivers; ++r) {
      out.emplace_back(std::allocator_arg, stacks, [&] {
        long sum = 0, v = 0;
        while (c.pop(v) == fibers::channel_op_status::success) sum += v;
        total += sum;
      });
    }
    for (long k = 0; k < senders; ++k) {
      in.emplace_back(std::allocator_arg, stacks, [&c, each] {
        for (long i = 0; i < each; ++i) c.push(i);
      });
    }
    for (auto& f : in) f.join();
    c.close();
    for (auto& f : out) f.join();
    const double ns = ns_each(each * senders, start);
    require(total == senders * (each * (each - 1) / 2), "sum of messages");
    return {ns, "ns"};
  });
}

result ring(unsigned workers, const sizes& s) {
  const long members = s["members"], laps = s["laps"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    std::vector<std::unique_ptr<fibers::unbuffered_channel<long>>> links;
    for (long i = 0; i < members; ++i) links.push_back(std::make_unique<fibers::unbuffered_channel<long>>());
    std::vector<fibers::fiber> all;
    for (std::size_t i = 0; i + 1 < links.size(); ++i) {
      all.emplace_back(std::allocator_arg, stacks, [&in = *links[i], &out = *links[i + 1]] {
        for (long v : in) out.push(v + 1);
        out.close();
      });
    }
    stopwatch::time_point start;
    for (long lap = -1; lap < laps; ++lap) {
      if (lap == 0) start = stopwatch::now();
      links.front()->push(lap);
      require(links.back()->value_pop() == lap + members - 1, "ring");
    }
    const double ns = ns_each(members * laps, start);
    links.front()->close();
    for (auto& f : all) f.join();
    return {ns, "ns"};
  });
}

result sieve(unsigned workers, const sizes& s) {
  const long primes = s["primes"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    using link = fibers::unbuffered_channel<int>;
    std::vector<std::unique_ptr<link>> links;
    std::vector<fibers::fiber> all;
    links.push_back(std::make_unique<link>());
    const auto start = stopwatch::now();
    all.emplace_back(std::allocator_arg, stacks, [&out = *links[0]] {
      for (int i = 2; out.push(i) == fibers::channel_op_status::success; ++i) {
      }
    });
    int last = 0;
    for (long k = 0; k < primes; ++k) {
      last = links.back()->value_pop();
      links.push_back(std::make_unique<link>());
      all.emplace_back(std::allocator_arg, stacks,
                       [&in = *links[links.size() - 2], &out = *links.back(), prime = last] {
                         int v = 0;
                         while (in.pop(v) == fibers::channel_op_status::success) {
                           if (v % prime != 0 && out.push(v) != fibers::channel_op_status::success) break;
                         }
                       });
    }
    const double ns = ns_each(1, start);
    for (auto& l : links) l->close();
    for (auto& f : all) f.join();
    require(last == nth_prime(primes), "sieve");
    return {ns / 1e6, "ms"};
  });
}

// Sharing ------------------------------------------------------------------------------------------------

// With two workers its work stealing leaves nearly all to one: nobody tells the other, which sleeps. That is fast.
result mutex_shared(unsigned workers, const sizes& s) {
  const long count = s["fibers"], each = s["each"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    fibers::mutex m;
    long counter = 0;
    std::vector<fibers::fiber> all;
    const auto start = stopwatch::now();
    for (long i = 0; i < count; ++i) {
      all.emplace_back(std::allocator_arg, stacks, [&m, &counter, each] {
        for (long k = 0; k < each; ++k) {
          std::lock_guard hold(m);
          ++counter;
        }
      });
    }
    for (auto& f : all) f.join();
    const double ns = ns_each(count * each, start);
    require(counter == count * each, "counter");
    return {ns, "ns"};
  });
}

result mutex_alone(unsigned, const sizes& s) {
  const long count = s["count"];
  fibers::mutex m;
  const auto start = stopwatch::now();
  for (long i = 0; i < count; ++i) {
    m.lock();
    m.unlock();
  }
  return {ns_each(count, start), "ns"};
}

// Waiting ------------------------------------------------------------------------------------------------

using never_sent = fibers::unbuffered_channel<int>;

std::vector<fibers::fiber> park(never_sent& never, long count, std::atomic<long>& inside) {
  fibers::pooled_fixedsize_stack stacks(stack_bytes);
  std::vector<fibers::fiber> all;
  all.reserve(static_cast<std::size_t>(count));
  for (long i = 0; i < count; ++i) {
    all.emplace_back(std::allocator_arg, stacks, [&] {
      inside.fetch_add(1, std::memory_order_relaxed);
      int v = 0;
      (void)never.pop(v);
    });
    if (i % 1'000 == 999) boost::this_fiber::yield();
  }
  while (inside.load() != count) boost::this_fiber::yield();
  return all;
}

result parked(unsigned, const sizes& s) {
  const long count = s["fibers"];
  never_sent never;
  std::atomic<long> inside{0};
  const double before = resident_bytes();
  auto start = stopwatch::now();
  auto all = park(never, count, inside);
  const double spawn_park = ns_each(count, start);
  const double bytes = (resident_bytes() - before) / static_cast<double>(count);
  start = stopwatch::now();
  never.close();
  for (auto& f : all) f.join();
  return {spawn_park, "ns", {{"bytes", bytes}, {"wake", ns_each(count, start)}}};
}

// Round robin sleeps in its thread's condition variable when there is nothing to do.
result wake(unsigned, const sizes& s) {
  const long rounds = s["rounds"];
  std::vector<long> late;
  fibers::buffered_channel<long> calls(2);
  std::thread caller([&] {
    for (long i = 0; i < rounds; ++i) {
      let_all_sleep();
      calls.push(now_ns());
    }
    calls.close();
  });
  fibers::fiber([&] {
    for (long called : calls) late.push_back(now_ns() - called);
  }).join();
  caller.join();
  require(static_cast<long>(late.size()) == rounds, "wakes");
  return percentiles(std::move(late));
}

result idle(unsigned, const sizes& s) {
  const long ms = s["ms"];
  never_sent never;
  std::atomic<long> inside{0};
  auto all = park(never, s["fibers"], inside);
  result found{};
  std::thread observer([&] {
    found = idle_cost(ms);
    never.close();
  });
  for (auto& f : all) f.join();
  observer.join();
  return found;
}

result sleepers(unsigned workers, const sizes& s) {
  const long count = s["fibers"], sleeps = s["sleeps"], in_a_row = s["in_a_row"];
  return on<shape::pipes>(workers, [=](auto stacks) -> result {
    std::vector<fibers::fiber> all;
    all.reserve(static_cast<std::size_t>(count));
    sleep_log log(count, sleeps);
    for (long i = 0; i < count; ++i) {
      all.emplace_back(std::allocator_arg, stacks,
                       [&log, i] { log.live(i, [](auto time) { boost::this_fiber::sleep_for(time); }); });
      if (i % in_a_row == in_a_row - 1) boost::this_fiber::yield();
    }
    for (auto& f : all) f.join();
    return log.found();
  });
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {
      {"yield", 1, yields},
      {"spawn-join", 2, spawn_join},
      {"spawn-all", 1, spawn_all},
      {"fib", 2, fib},
      {"skynet-channels", 2, skynet<false>},
      {"skynet-join", 2, skynet<true>},
      {"ping-pong", 2, ping_pong},
      {"channel", 2, stream},
      {"ring", 2, ring},
      {"sieve", 2, sieve},
      {"parked", 1, parked},
      {"wake", 1, wake},
      {"idle", 1, idle},
      {"sleepers", 2, sleepers},
      {"mutex", 2, mutex_shared},
      {"mutex-alone", 1, mutex_alone},
  };
  return run_program(argc, argv, all);
}
