// SPDX-License-Identifier: BSL-1.0
// Fibers that talk. Results of fibers go where their task takes them; messages are counted and summed.
#include <compare/ramie/ramie.hpp>

namespace compare {

using ramie::channel;

namespace {
void tree(const channel<long>& up, long number, long size) {
  if (size == 1) {
    up.send(number);
    return;
  }
  channel<long> c(0);
  ramie::nursery n;
  for (int i = 0; i < 10; ++i) {
    n.spawn([c, first = number + i * (size / 10), size] { tree(c, first, size / 10); });
  }
  long sum = 0;
  for (int i = 0; i < 10; ++i) sum += *c.recv();
  n.join();
  up.send(sum);
}

long skynet(long leaves) {
  channel<long> c(1);
  tree(c, 0, leaves);
  return *c.recv();
}
}  // namespace

result skynet_channels(unsigned workers, const sizes& s) {
  const long leaves = s["leaves"];
  return ramie::run(with(workers), [=]() -> result {
    return timed_skynet(leaves, [](long size) { return skynet(size); });
  });
}

result ping_pong(unsigned workers, const sizes& s) {
  const long rounds = s["rounds"];
  return ramie::run(with(workers), [=]() -> result {
    channel<long> there(0), back(0);
    ramie::nursery n;
    n.spawn([=] {
      for (long v : there) back.send(v);
    });
    const double ns = round_trip_ns(rounds, [&](long i) {
      there.send(i);
      require(*back.recv() == i, "echo");
    });
    there.close();
    n.join();
    return {ns, "ns"};
  });
}

result stream(unsigned workers, const sizes& s) {
  const long senders = s["senders"], receivers = s["receivers"], each = s["messages"] / senders;
  const auto capacity = static_cast<std::size_t>(s["capacity"]);
  return ramie::run(with(workers), [=]() -> result {
    channel<long> c(capacity);
    ramie::nursery out;
    std::vector<ramie::task<long>> sums;
    const auto start = stopwatch::now();
    for (long r = 0; r < receivers; ++r) {
      sums.push_back(out.spawn([=] {
        long sum = 0;
        for (long v : c) sum += v;
        return sum;
      }));
    }
    ramie::nursery in;
    for (long k = 0; k < senders; ++k) {
      in.spawn([=] {
        for (long i = 0; i < each; ++i) c.send(i);
      });
    }
    in.join();
    c.close();
    out.join();
    const double ns = ns_each(each * senders, start);
    long sum = 0;
    for (auto& t : sums) sum += t.get();
    require(sum == senders * (each * (each - 1) / 2), "sum of messages");
    return {ns, "ns"};
  });
}

result ring(unsigned workers, const sizes& s) {
  const long members = s["members"], laps = s["laps"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::nursery n;
    std::vector<channel<long>> links;
    for (long i = 0; i < members; ++i) links.emplace_back(0);
    for (std::size_t i = 0; i + 1 < links.size(); ++i) {
      n.spawn([in = links[i], out = links[i + 1]] {
        for (long v : in) out.send(v + 1);
        out.close();
      });
    }
    stopwatch::time_point start;
    for (long lap = -1; lap < laps; ++lap) {
      if (lap == 0) start = stopwatch::now();  // everybody has started and waits
      links.front().send(lap);
      require(*links.back().recv() == lap + members - 1, "ring");
    }
    const double ns = ns_each(members * laps, start);
    links.front().close();
    n.join();
    return {ns, "ns"};
  });
}

result sieve(unsigned workers, const sizes& s) {
  const long primes = s["primes"];
  int last = 0;
  double ns = 0;
  ramie::run(with(workers), [&] {
    const auto start = stopwatch::now();
    try {
      ramie::with_nursery([&](ramie::nursery& n) {
        channel<int> c(0);
        n.spawn([c] {
          for (int i = 2;; ++i) c.send(i);
        });
        for (long k = 0; k < primes; ++k) {
          last = *c.recv();
          channel<int> next(0);
          n.spawn([c, next, prime = last] {
            for (int v : c) {
              if (v % prime != 0) next.send(v);
            }
          });
          c = next;
        }
        ns = ns_each(1, start);  // before the cancellation of thousands: the others just exit
        n.cancel();
      });
    } catch (const ramie::cancelled&) {
    }
  });
  require(last == nth_prime(primes), "sieve");
  return {ns / 1e6, "ms"};
}

result watch_in_turns(unsigned workers, const sizes& s) {
  const long rounds = s["rounds"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::watch<long> there(-1), back(-1);
    auto answer = back.subscribe();
    ramie::nursery n;
    n.spawn([asked = there.subscribe(), back]() mutable {
      while (asked.changed()) back.send(*asked.get());
    });
    const double ns = round_trip_ns(rounds, [&](long i) {
      there.send(i);
      require(answer.changed() && *answer.get() == i, "watch");
    });
    there.close();
    n.join();
    return {ns, "ns"};
  });
}

}  // namespace compare
