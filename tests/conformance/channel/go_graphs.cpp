// SPDX-License-Identifier: BSL-1.0
// Programs as Go programmers write them: many fibers in chains, rings, trees and graphs.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_go_graphs {

using test::with_workers;
using namespace test::select_words;

TEST_CASE("the prime sieve", "[conformance][go]") {
  const std::size_t wanted = static_cast<std::size_t>(test::scaled(100, 40));
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::vector<int> primes;
    ramie::run(with_workers(workers), [&] {
      nursery n;  // without a join: what is endless ends
      channel<int> numbers(0);
      n.spawn([=] {
        for (int i = 2;; ++i) numbers.send(i);
      });
      while (primes.size() < wanted) {
        const int prime = numbers.recv().value_or(-1);
        primes.push_back(prime);
        channel<int> rest(0);
        n.spawn([=] {
          for (const int i : numbers) {
            if (i % prime != 0) rest.send(i);
          }
        });
        numbers = rest;
      }
    });
    const bool all_prime = std::all_of(primes.begin(), primes.end(), [](int p) {
      for (int d = 2; d * d <= p; ++d) {
        if (p % d == 0) return false;
      }
      return p > 1;
    });
    CHECK(all_prime);
    CHECK(std::is_sorted(primes.begin(), primes.end()));
    CHECK(primes.back() == (wanted == 100 ? 541 : 173));
  }
}

// Power series whose coefficients flow through channels, each operation a fiber or a whole tree of them.
namespace series {

// Modulo a prime: fibers far up a graph run ahead, to coefficients that no integer would hold.
class fraction {
 public:
  fraction(std::int64_t top = 0, std::int64_t bottom = 1) : residue_(residue(top) * inverse(residue(bottom)) % prime) {}
  friend fraction operator+(fraction a, fraction b) { return of((a.residue_ + b.residue_) % prime); }
  friend fraction operator*(fraction a, fraction b) { return of(a.residue_ * b.residue_ % prime); }
  bool operator==(const fraction&) const = default;

 private:
  static constexpr std::uint64_t prime = 1'000'000'007;
  static std::uint64_t residue(std::int64_t n) {
    const auto p = static_cast<std::int64_t>(prime);
    return static_cast<std::uint64_t>((n % p + p) % p);
  }
  static std::uint64_t inverse(std::uint64_t n) {
    std::uint64_t result = 1;
    for (std::uint64_t k = prime - 2; k != 0; k /= 2, n = n * n % prime)
      result = k % 2 != 0 ? result * n % prime : result;
    return result;
  }
  static fraction of(std::uint64_t r) {
    fraction f;
    f.residue_ = r;
    return f;
  }
  std::uint64_t residue_;
};
using stream = channel<fraction>;

template <class F>
stream make(nursery& n, F next) {
  stream out(0);
  n.spawn([=]() mutable {
    for (std::int64_t i = 0;; ++i) out.send(next(i));
  });
  return out;
}
fraction head(const stream& s) {
  return s.recv().value();
}
stream sum(nursery& n, stream a, stream b) {
  return make(n, [=](std::int64_t) {
    const auto left = head(a);
    return left + head(b);
  });
}
stream times(nursery& n, stream a, fraction factor) {
  return make(n, [=](std::int64_t) { return head(a) * factor; });
}
stream derivative(nursery& n, stream a) {
  return make(n, [=](std::int64_t i) {
    if (i == 0) (void)head(a);
    return head(a) * fraction(i + 1);
  });
}
stream integral(nursery& n, stream a, fraction constant) {
  return make(n, [=](std::int64_t i) { return i == 0 ? constant : head(a) * fraction(1, i); });
}
// x times the series.
stream shifted(nursery& n, stream a) {
  return make(n, [=](std::int64_t i) { return i == 0 ? fraction(0) : head(a); });
}
// The same coefficients twice. It reads on only when one of the two has nothing to send: a case on an empty handle is
// off.
std::pair<stream, stream> split(nursery& n, stream in) {
  stream left(0), right(0);
  n.spawn([=] {
    std::deque<fraction> for_left, for_right;
    fraction l, r;
    for (;;) {
      if (!for_left.empty()) l = for_left.front();
      if (!for_right.empty()) r = for_right.front();
      select(on_recv(for_left.empty() || for_right.empty() ? in : stream(),
                     [&](auto v) {
                       for_left.push_back(v.value());
                       for_right.push_back(v.value());
                     }),
             on_send(for_left.empty() ? stream() : left, l, [&](bool) { for_left.pop_front(); }),
             on_send(for_right.empty() ? stream() : right, r, [&](bool) { for_right.pop_front(); }));
    }
  });
  return {left, right};
}
// (f + xF)(g + xG) = fg + x(fG + gF + xFG): one more level of fibers for every coefficient that is asked for.
stream product(nursery& n, stream a, stream b) {
  stream out(0);
  n.spawn([=, &n] {
    const auto f = head(a), g = head(b);
    out.send(f * g);
    const auto [a1, a2] = split(n, a);
    const auto [b1, b2] = split(n, b);
    const auto rest = sum(n, sum(n, times(n, b1, f), times(n, a1, g)), shifted(n, product(n, a2, b2)));
    for (;;) out.send(head(rest));
  });
  return out;
}
std::vector<fraction> take(const stream& s, int count) {
  std::vector<fraction> all;
  for (int i = 0; i < count; ++i) all.push_back(head(s));
  return all;
}

}  // namespace series

TEST_CASE("power series flow through deep graphs of channels", "[conformance][go]") {
  using namespace series;
  const int terms = test::scaled(16, 8);
  const auto ones = [](nursery& n) { return make(n, [](std::int64_t) { return fraction(1); }); };
  const auto numbers = [](nursery& n) { return make(n, [](std::int64_t i) { return fraction(i + 1); }); };
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::vector<fraction> naturals, squared, derived, added, exponential, tangent;
    ramie::run(with_workers(workers), [&] {
      nursery n;  // without a join: what is endless ends
      naturals = take(numbers(n), terms);
      squared = take(product(n, ones(n), ones(n)), terms);
      derived = take(derivative(n, ones(n)), terms);
      added = take(sum(n, numbers(n), times(n, numbers(n), fraction(-1))), terms);
      // exp = 1 + integral of exp: a graph that feeds itself.
      stream feedback(0);
      const auto [seen, again] = split(n, integral(n, feedback, fraction(1)));
      n.spawn([feedback, again = again] {
        for (;;) feedback.send(head(again));
      });
      exponential = take(seen, terms);
      // tan = integral of 1 + tan^2
      stream loop(0);
      const auto [tan, copy] = split(n, integral(n, loop, fraction(0)));
      const auto [left, right] = split(n, copy);
      const auto square = product(n, left, right);
      n.spawn([loop, square] {
        loop.send(head(square) + fraction(1));
        for (;;) loop.send(head(square));
      });
      tangent = take(tan, 8);
    });
    CHECK(squared == naturals);
    CHECK(derived == naturals);
    CHECK(added == std::vector<fraction>(static_cast<std::size_t>(terms)));
    CHECK(tangent == std::vector<fraction>{0, 1, 0, {1, 3}, 0, {2, 15}, 0, {17, 315}});
    fraction expected(1);
    for (int i = 0; i < terms; ++i) {
      if (i > 0) expected = expected * fraction(1, i);
      CHECK(exponential[static_cast<std::size_t>(i)] == expected);
    }
  }
}

TEST_CASE("a chain and a ring of a thousand", "[conformance][go]") {
  const int length = test::scaled(1'000, 100), laps = 5;
  for (const unsigned workers : {1u, 2u, 4u}) {
    int through_chain = 0, round_ring = 0;
    ramie::run(with_workers(workers), [&] {
      nursery n;
      channel<int> first(0), left = first;
      for (int i = 0; i < length; ++i) {
        channel<int> right(0);
        n.spawn([=] { left.send(1 + right.recv().value_or(0)); });
        left = right;
      }
      left.send(1);
      through_chain = first.recv().value_or(0);
      std::vector<channel<int>> ring;
      for (int i = 0; i < length; ++i) ring.emplace_back(0);
      for (int i = 0; i < length; ++i) {
        n.spawn([from = ring[static_cast<std::size_t>(i)], to = ring[static_cast<std::size_t>((i + 1) % length)],
                 &round_ring, i, length] {
          for (int lap = 0; lap < laps; ++lap) {
            const int token = from.recv().value_or(0);
            if (i == length - 1 && lap == laps - 1) {
              round_ring = token;
            } else {
              to.send(token + 1);
            }
          }
        });
      }
      ring[0].send(1);
      n.join();
    });
    CHECK(through_chain == length + 1);
    CHECK(round_ring == laps * length);
  }
}

TEST_CASE("two trees with the same fringe", "[conformance][go]") {
  struct tree {
    std::unique_ptr<tree> left, right;
    int value = 0;
  };
  // Inserted in another order, they have another shape.
  const auto grow = [](int factor, int size, int wrong_at) {
    std::unique_ptr<tree> root;
    for (int i = 0; i < size; ++i) {
      const int number = i * factor % size;
      const int value = number == wrong_at ? number * 2 : number * 2 + 1;
      auto* at = &root;
      while (*at != nullptr) at = value < (*at)->value ? &(*at)->left : &(*at)->right;
      *at = std::make_unique<tree>();
      (*at)->value = value;
    }
    return root;
  };
  struct walker {
    static void walk(const tree* t, const channel<int>& out) {
      if (t == nullptr) return;
      walk(t->left.get(), out);
      out.send(t->value);
      walk(t->right.get(), out);
    }
  };
  const auto same = [](const tree& a, const tree& b) {
    nursery n;  // without a join: a walk that was left half-way ends, too
    channel<int> left(0), right(0);
    for (const auto& [t, c] : {std::pair(&a, left), std::pair(&b, right)}) {
      n.spawn([t = t, c = c] {
        walker::walk(t, c);
        c.close();
      });
    }
    for (;;) {
      const auto l = left.recv(), r = right.recv();
      if (l != r) return false;
      if (!l) return true;
    }
  };
  const auto first = grow(7, 1'000, -1), second = grow(331, 1'000, -1), third = grow(331, 1'000, 900);
  for (const unsigned workers : {1u, 2u, 4u}) {
    bool equal = false, different = true;
    ramie::run(with_workers(workers), [&] {
      equal = same(*first, *second);
      different = !same(*first, *third) && !same(*third, *second);
    });
    CHECK(equal);
    CHECK(different);
  }
}

TEST_CASE("ten thousand channels, each with a producer and a consumer", "[conformance][go]") {
  const int pairs = test::scaled(10'000, 400);
  for (const unsigned workers : {1u, 4u}) {
    std::atomic<long> sum{0};
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < pairs; ++i) {
        auto [tx, rx] = ramie::make_channel<int>(static_cast<std::size_t>(i % 3));
        n.spawn([rx = std::move(rx), &sum] {
          long mine = 0;
          for (const int v : rx) mine += v;
          sum.fetch_add(mine);
        });
        n.spawn([tx = std::move(tx)] {
          for (int v = 1; v <= 5; ++v) tx.send(v);
        });
      }
      n.join();
    });
    CHECK(sum.load() == 15L * pairs);
  }
}

TEST_CASE("closing a done channel ends a whole pipeline", "[conformance][go]") {
  for (const unsigned workers : {1u, 2u, 4u}) {
    std::atomic<int> ended{0};
    std::vector<int> got;
    ramie::run(with_workers(workers), [&] {
      channel<int> done(0), from(0);
      nursery n;
      n.spawn([=, &ended] {
        int i = 0;
        for (bool stop = false; !stop;) {
          int element = i;
          select(on_send(from, element, [&](bool) { ++i; }), on_recv(done, [&](auto) { stop = true; }));
        }
        ended.fetch_add(1);
      });
      for (int stage = 0; stage < 20; ++stage) {
        channel<int> to(0);
        n.spawn([=, &ended] {
          for (bool stop = false; !stop;) {
            std::optional<int> element;
            select(on_recv(from, [&](auto v) { element = v; }), on_recv(done, [&](auto) { stop = true; }));
            if (!element) continue;
            int next = *element + 1;
            select(on_send(to, next, whatever), on_recv(done, [&](auto) { stop = true; }));
          }
          ended.fetch_add(1);
        });
        from = to;
      }
      for (int i = 0; i < 10; ++i) got.push_back(from.recv().value_or(-1));
      done.close();
      n.join();
    });
    CHECK(ended.load() == 21);
    CHECK(got == std::vector<int>{20, 21, 22, 23, 24, 25, 26, 27, 28, 29});
  }
}

}  // namespace conformance_channel_go_graphs
