// SPDX-License-Identifier: BSL-1.0
// select: exactly one case happens, each with the same right, and the others have not happened at all.
#include <array>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_select {

using namespace test;
using namespace test::select_words;

double chi_square(const std::vector<int>& counts) {
  double all = 0, sum = 0;
  for (const int c : counts) all += c;
  const double expected = all / static_cast<double>(counts.size());
  for (const int c : counts) sum += (c - expected) * (c - expected) / expected;
  return sum;
}
// With up to 7 degrees of freedom a fair choice goes beyond this about once in 10^12 runs.
constexpr double far_from_even = 70;
constexpr int many_choices = 10'000;

TEST_CASE("exactly one case happens, and the others have taken and given nothing", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> a(1), b(1);
    channel<std::unique_ptr<int>> c(1);
    channel<std::string> full(1);
    full.send("there");
    std::array<int, 3> seen{};
    for (int round = 0; round < 300; ++round) {
      if (a.size() == 0) a.send(1);
      if (b.size() == 0) b.send(2);
      if (c.size() != 0) EXPECT(found, *c.recv() != nullptr);
      auto mine = std::make_unique<int>(3);
      std::string text(100, 'x');
      std::size_t handled = 9;
      const auto which = select(on_recv(a,
                                        [&](std::optional<int> v) {
                                          EXPECT(found, v == 1);
                                          handled = 0;
                                        }),
                                on_recv(b,
                                        [&](std::optional<int> v) {
                                          EXPECT(found, v == 2);
                                          handled = 1;
                                        }),
                                on_send(c, mine,
                                        [&](bool sent) {
                                          EXPECT(found, sent, mine == nullptr);
                                          handled = 2;
                                        }),
                                on_send(full, text, whatever));
      EXPECT(found, which == handled, which < 3);
      ++seen[which % 3];
      EXPECT(found, a.size() == (which != 0), b.size() == (which != 1), c.size() == (which == 2));
      EXPECT(found, (mine == nullptr) == (which == 2));
      EXPECT(found, text.size() == 100, full.size() == 1);
    }
    for (const int times : seen) EXPECT(found, times > 0);
  });
}

TEST_CASE("the losing cases of a select that waited are off", "[conformance][select]") {
  as_fiber([](findings& found, auto&) {
    channel<int> a(0), won(0);
    channel<std::unique_ptr<int>> b(0);
    auto mine = std::make_unique<int>(7);
    int got = 0, ran = 0;
    nursery n;
    auto which = n.spawn([&] {
      return select(on_recv(a, [&](std::optional<int>) { ++ran; }), on_send(b, mine, [&](bool) { ++ran; }),
                    on_recv(won, [&](std::optional<int> v) { got = *v; }));
    });
    ramie::yield();
    EXPECT(found, won.try_send(5) == channel_status::ok);
    for (int look = 0; look < 2; ++look) {  // before it runs again, and after
      EXPECT(found, a.try_send(1) == channel_status::would_block);
      EXPECT(found, b.try_recv().status() == channel_status::would_block);
      EXPECT(found, won.try_send(6) == channel_status::would_block);
      ramie::yield();
    }
    EXPECT(found, which.get() == 2, got == 5, ran == 0);
    EXPECT(found, mine != nullptr, *mine == 7);
  });
}

TEST_CASE("each of several ready cases is as likely as the others", "[conformance][select]") {
  const int rounds = test::scaled(many_choices, 2'000);
  const auto distribution = [&](std::size_t n, auto fill) {
    ramie::selector all;
    fill(all, n);
    std::vector<int> counts(n);
    for (int i = 0; i < rounds; ++i) ++counts[all.wait()];
    return chi_square(counts);
  };
  const auto full_buffers = [](ramie::selector& all, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      channel<int> c(1);
      c.send(1);
      all.on_recv(c, [c](std::optional<int> v) { c.send(*v); });
    }
  };
  const auto empty_buffers = [](ramie::selector& all, std::size_t n) {
    static int element = 1;
    for (std::size_t i = 0; i < n; ++i) {
      channel<int> c(1);
      all.on_send(c, element, [c](bool) { (void)c.recv(); });
    }
  };
  const auto closed_ones = [](ramie::selector& all, std::size_t n) {
    static int element = 1;
    for (std::size_t i = 0; i < n; ++i) {
      channel<int> c(0);
      c.close();
      i % 2 == 0 ? all.on_recv(c, whatever) : all.on_send(c, element, whatever);
    }
  };
  const auto one_channel = [](ramie::selector& all, std::size_t n) {
    channel<int> c(2);
    c.send(1);
    static int element = 1;
    for (std::size_t i = 0; i < n; ++i) {
      i % 2 == 0 ? all.on_recv(c, [c](auto) { c.send(1); }) : all.on_send(c, element, [c](bool) { (void)c.recv(); });
    }
  };
  for (const std::size_t n : {2u, 3u, 8u}) {
    std::vector<double> spread;
    const auto measure = [&] {
      spread.push_back(distribution(n, full_buffers));
      spread.push_back(distribution(n, empty_buffers));
      spread.push_back(distribution(n, closed_ones));
      spread.push_back(distribution(n, one_channel));
    };
    measure();
    ramie::run(with_workers(1), [&] {
      measure();
      nursery home;
      std::vector<ramie::task<void>> ended;
      for (std::size_t i = 0; i < n; ++i) ended.push_back(home.spawn([] {}));
      for (auto& t : ended) t.wait();
      const auto joins = [&](ramie::selector& all, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i) all.on_ready(ended[i], whatever);
      };
      const auto joins_and_channels = [&](ramie::selector& all, std::size_t count) {
        all.on_ready(ended[0], whatever);
        full_buffers(all, count - 1);
      };
      spread.push_back(distribution(n, joins));
      spread.push_back(distribution(n, joins_and_channels));
      home.join();
    });
    for (const double s : spread) CHECK(s < far_from_even);
  }
}

TEST_CASE("a case on a closed channel is ready", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    channel<std::string> closed(2), broken(2), open(0);
    closed.send("last");
    closed.close();
    broken.send("before");
    broken.close(std::make_exception_ptr(std::runtime_error("broken")));
    std::optional<std::string> got("none yet");
    const auto keep = [&](std::optional<std::string> v) { got = std::move(v); };
    EXPECT(found, select(on_recv(open, whatever), on_recv(closed, keep)) == 1, got == "last");
    EXPECT(found, select(on_recv(open, whatever), on_recv(closed, keep)) == 1, !got);
    EXPECT(found, select(on_recv(broken, keep), on_recv(open, whatever)) == 0, got == "before");
    std::string thrown;
    try {
      (void)select(on_recv(broken, keep), on_recv(open, whatever));
    } catch (const std::runtime_error& e) {
      thrown = e.what();
    }
    EXPECT(found, thrown == "broken", got == "before");
    for (const auto& c : {closed, broken}) {
      std::string mine(50, 'm');
      bool sent = true;
      EXPECT(found, select(on_send(c, mine, [&](bool done) { sent = done; }), on_recv(open, whatever)) == 0);
      EXPECT(found, !sent, mine.size() == 50);
    }
  });
}

TEST_CASE("a close ends a select that waits", "[conformance][select]") {
  as_fiber([](findings& found, auto&) {
    channel<int> other(0);
    channel<std::unique_ptr<int>> c(0);
    bool nothing = false, sent = false, threw = false;
    auto mine = std::make_unique<int>(4);
    {
      nursery n;
      n.spawn([&] { select(on_recv(other, whatever), on_recv(c, [&](auto v) { nothing = !v; })); });
      ramie::yield();
      c.close();
      n.join();
    }
    c = channel<std::unique_ptr<int>>(0);
    {
      nursery n;
      n.spawn([&] { select(on_recv(other, whatever), on_send(c, mine, [&](bool done) { sent = done; })); });
      ramie::yield();
      c.close();
      n.join();
    }
    EXPECT(found, nothing, sent, mine == nullptr);
    EXPECT(found, c.size() == 1, **c.recv() == 4, !c.recv());
    c = channel<std::unique_ptr<int>>(0);
    nursery n;
    n.spawn([&] {
      try {
        select(on_recv(other, whatever), on_recv(c, whatever));
      } catch (const std::logic_error&) {
        threw = true;
      }
    });
    ramie::yield();
    c.close(std::make_exception_ptr(std::logic_error("why")));
    n.join();
    found.expect(threw);
    EXPECT(found, other.try_send(1) == channel_status::would_block);
  });
}

TEST_CASE("a case on an empty handle is never ready", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    const channel<int> none;
    const ramie::sender<int> no_sender;
    const ramie::receiver<int> no_receiver;
    const ramie::task<int> no_task;
    const ramie::oneshot_receiver<int> no_oneshot;
    const ramie::broadcast_receiver<int> no_broadcast;
    const ramie::watch_receiver<int> no_watch;
    channel<int> ready(1);
    int element = 1;
    for (int round = 0; round < 50; ++round) {
      ready.send(round);
      EXPECT(found,
             select(on_recv(none, whatever), on_send(none, element, whatever), on_send(no_sender, element, whatever),
                    on_recv(no_receiver, whatever), on_recv(ready, whatever), on_ready(no_task, whatever),
                    on_ready(no_oneshot, whatever), on_ready(no_broadcast, whatever), on_ready(no_watch, whatever)) == 4);
      EXPECT(found, select(on_recv(none, whatever), on_send(none, element, whatever), on_ready(no_task, whatever),
                           otherwise(whatever)) == 3);
    }
  });
}

TEST_CASE("one channel in several cases", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> c(4);
    std::array<int, 3> seen{};
    int next = 0, expected = 0;
    for (int round = 0; round < 300; ++round) {
      while (c.size() < 4) c.send(next++);
      const auto in_order = [&](std::optional<int> v) { EXPECT(found, v == expected++); };
      ++seen[select(on_recv(c, in_order), on_recv(c, in_order), on_recv(c, in_order))];
      EXPECT(found, c.size() == 3);
    }
    for (const int times : seen) EXPECT(found, times > 30);
  });
  as_fiber([](findings& found, auto&) {
    channel<int> c(0);
    int handled = 0;
    nursery n;
    auto first = n.spawn(
        [&] { return select(on_recv(c, [&](auto v) { handled += *v; }), on_recv(c, [&](auto v) { handled += *v; })); });
    ramie::yield();
    EXPECT(found, c.try_send(10) == channel_status::ok);
    EXPECT(found, c.try_send(100) == channel_status::would_block);
    EXPECT(found, first.get() < 2);
    EXPECT(found, handled == 10);
  });
}

TEST_CASE("both directions of one channel: a select does not meet itself", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    channel<int> c(0);
    int element = 1;
    EXPECT(found, select(on_recv(c, whatever), on_send(c, element, whatever), otherwise(whatever)) == 2);
    EXPECT(found, select(on_recv(c, whatever), on_send(c, element, whatever), on_timeout(0s, whatever)) == 2);
  });
  as_fiber([](findings& found, auto&) {
    channel<int> c(0);
    int element = 5, got = 0;
    for (int round = 0; round < 20; ++round) {
      nursery n;
      auto which =
          n.spawn([&] { return select(on_recv(c, [&](auto v) { got = *v; }), on_send(c, element, [](bool) {})); });
      ramie::yield();
      found.expect(!which.done());
      if (round % 2 == 0) {
        EXPECT(found, c.try_send(round) == channel_status::ok);
        EXPECT(found, c.try_recv().status() == channel_status::would_block);
        EXPECT(found, which.get() == 0, got == round);
      } else {
        const auto r = c.try_recv();
        EXPECT(found, r, *r == 5);
        EXPECT(found, c.try_send(1) == channel_status::would_block);
        EXPECT(found, which.get() == 1);
      }
      n.join();
    }
  });
}

template <std::size_t... I>
std::size_t select_among_all(const std::array<channel<int>, sizeof...(I)>& c, int& got, std::index_sequence<I...>) {
  return select(on_recv(c[I], [&](std::optional<int> v) { got = *v; })...);
}

TEST_CASE("sixty-four cases", "[conformance][select]") {
  constexpr auto all = std::make_index_sequence<64>();
  as_thread_and_fiber([&](findings& found) {
    std::array<channel<int>, 64> c;
    for (auto& each : c) each = channel<int>(1);
    for (std::size_t k = 0; k < 64; ++k) {
      int got = -1;
      c[k].send(static_cast<int>(k));
      EXPECT(found, select_among_all(c, got, all) == k, got == static_cast<int>(k));
    }
  });
  as_fiber([&](findings& found, auto&) {
    std::array<channel<int>, 64> c;
    for (auto& each : c) each = channel<int>(0);
    for (std::size_t k = 0; k < 64; ++k) {
      int got = -1;
      nursery n;
      auto which = n.spawn([&] { return select_among_all(c, got, all); });
      c[k].send(8);  // waits until the select is listed
      EXPECT(found, which.get() == k, got == 8);
    }
  });
}

TEST_CASE("a selector is made at run time and waits again and again", "[conformance][select]") {
  as_fiber([](findings& found, auto&) {
    for (const std::size_t size : {1u, 64u, 1'000u}) {
      const int rounds = test::scaled(300, 40);
      std::vector<channel<int>> in(size);
      channel<std::size_t> wanted(0);
      ramie::selector any;
      int got = -1;
      for (auto& c : in) {
        c = channel<int>(0);
        any.on_recv(c, [&](std::optional<int> v) { got = *v; });
      }
      EXPECT(found, any.size() == size);
      nursery n;
      n.spawn([&] {
        int number = 0;
        for (const std::size_t k : wanted) in[k].send(number++);
      });
      for (int round = 0; round < rounds; ++round) {
        const auto k = static_cast<std::size_t>(round) * 7919 % size;
        wanted.send(k);
        if (round % 2 == 0) ramie::yield();  // the sender waits for the select, or the other way round
        EXPECT(found, any.wait() == k, got == round);
      }
      wanted.close();
      n.join();
      for (auto& c : in) EXPECT(found, c.try_send(1) == channel_status::would_block);
      any.clear();
      EXPECT(found, any.size() == 0);
    }
  });
}

// An element that stayed behind would be destroyed at the next delivery, under the channel's lock.
TEST_CASE("a case that has happened keeps nothing of its element", "[conformance][select]") {
  as_thread_and_fiber([](findings& found) {
    const auto element = std::make_shared<int>(1);
    const channel<std::shared_ptr<int>> c(1);
    ramie::selector s;
    s.on_recv(c, [&](const std::optional<std::shared_ptr<int>>& got) { EXPECT(found, got, *got == element); });
    for (int i = 0; i < 3; ++i) {
      c.send(element);
      EXPECT(found, s.wait() == 0);
      EXPECT(found, element.use_count() == 1);
    }
  });
}

}  // namespace conformance_channel_select
