// SPDX-License-Identifier: BSL-1.0
// Fibers that share something: mutex, semaphore, notify, once_cell.
#include <mutex>

#include <compare/ramie/ramie.hpp>

namespace compare {

result mutex_shared(unsigned workers, const sizes& s) {
  const long fibers = s["fibers"], each = s["each"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::mutex m;
    long counter = 0;
    ramie::nursery n;
    const auto start = stopwatch::now();
    for (long i = 0; i < fibers; ++i) {
      n.spawn([&m, &counter, each] {
        for (long k = 0; k < each; ++k) {
          std::lock_guard hold(m);
          ++counter;
        }
      });
    }
    n.join();
    const double ns = ns_each(fibers * each, start);
    require(counter == fibers * each, "counter");
    return {ns, "ns"};
  });
}

result mutex_alone(unsigned workers, const sizes& s) {
  const long count = s["count"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::mutex m;
    const auto start = stopwatch::now();
    for (long i = 0; i < count; ++i) {
      m.lock();
      m.unlock();
    }
    return {ns_each(count, start), "ns"};
  });
}

result semaphore_alone(unsigned workers, const sizes& s) {
  const long count = s["count"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::semaphore permits(1);
    const auto start = stopwatch::now();
    for (long i = 0; i < count; ++i) {
      permits.acquire();
      permits.release();
    }
    return {ns_each(count, start), "ns"};
  });
}

result notify_in_turns(unsigned workers, const sizes& s) {
  const long rounds = s["rounds"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::notify there, back;
    ramie::nursery n;
    n.spawn([&, rounds] {
      for (long i = 0; i < warm_up_trips + rounds; ++i) {
        there.wait();
        back.notify_one();
      }
    });
    const double ns = round_trip_ns(rounds, [&](long) {
      there.notify_one();
      back.wait();
    });
    n.join();
    return {ns, "ns"};
  });
}

result once_get(unsigned workers, const sizes& s) {
  const long count = s["count"];
  return ramie::run(with(workers), [=]() -> result {
    ramie::once_cell<long> cell;
    cell.get_or_init([] { return 1L; });
    long sum = 0;
    const auto start = stopwatch::now();
    for (long i = 0; i < count; ++i) sum += *cell.get();
    const double ns = ns_each(count, start);
    require(sum == count, "once");
    return {ns, "ns"};
  });
}

}  // namespace compare
