// SPDX-License-Identifier: BSL-1.0
// What channels carry: elements of every shape, and the handles through which they go.
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/census.hpp>
#include <support/number_in.hpp>
#include <support/channel_observer.hpp>
#include <support/test.hpp>

namespace conformance_channel_elements {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::channel_status;
using ramie::usage_error;
using namespace test;

// --- Shapes: each is made from a number and can tell it ---

struct byte_sized {
  unsigned char n;
  explicit byte_sized(int number) : n(static_cast<unsigned char>(number)) {}
  [[nodiscard]] int number() const { return n; }
};
struct addressless {
  int n;
  explicit addressless(int number) : n(number) {}
  addressless(addressless&& other) noexcept : n(other.n) {}
  void operator&() const = delete;
  [[nodiscard]] int number() const { return n; }
};
struct three_bytes {
  std::array<unsigned char, 3> n;
  explicit three_bytes(int number) : n{} { n.fill(static_cast<unsigned char>(number)); }
  [[nodiscard]] int number() const { return n[0] == n[1] && n[1] == n[2] ? n[0] : -1; }
};
struct eight_bytes {
  long n;
  explicit eight_bytes(int number) : n(number) {}
  [[nodiscard]] int number() const { return static_cast<int>(n); }
};
struct move_only {
  std::unique_ptr<int> n;
  explicit move_only(int number) : n(make(number)) {}
  [[nodiscard]] int number() const { return n ? *n : -1; }
};
struct large {  // its bytes may be copied, but by its own functions
  std::array<int, 256> n;
  explicit large(int number) : n{} { n.fill(number); }
  [[nodiscard]] int number() const { return n.front() == n.back() ? n.front() : -1; }
};
struct alignas(128) aligned_bytes {
  int n;
  explicit aligned_bytes(int number) : n(number) {}
  [[nodiscard]] int number() const { return n; }
};
struct alignas(256) aligned_object {  // knows where it is
  int n;
  const aligned_object* self = this;
  explicit aligned_object(int number) : n(number) {}
  aligned_object(aligned_object&& other) noexcept : n(std::exchange(other.n, -1)) {}
  [[nodiscard]] int number() const {
    return self == this && reinterpret_cast<std::uintptr_t>(this) % 256 == 0 ? n : -2;
  }
  ~aligned_object() {
    if (number() == -2) misplaced.fetch_add(1);
  }
  static inline std::atomic<int> misplaced{0};
};
struct unassignable {
  const int n;
  const std::string text;
  explicit unassignable(int number) : n(number), text(std::to_string(number) + ": long enough for the heap") {}
  [[nodiscard]] int number() const { return text.starts_with(std::to_string(n)) ? n : -1; }
};
struct short_text {  // inside the string object, which points to itself
  std::string text;
  explicit short_text(int number) : text(std::to_string(number)) {}
  [[nodiscard]] int number() const { return test::number_in(text); }
};

template <class T>
bool send_somehow(const channel<T>& ch, T&& it, int way) {
  if (way % 3 == 0) return ch.send(std::move(it));
  if (way % 3 == 1) return ch.send_for(std::move(it), 1h) == channel_status::ok;
  channel_status status{};
  test::yield_until([&] { return (status = ch.try_send(std::move(it))) != channel_status::would_block; });
  return status == channel_status::ok;
}
template <class T>
std::optional<int> receive_somehow(const channel<T>& ch, int way) {
  const auto number = [](const T& it) {
    return reinterpret_cast<std::uintptr_t>(std::addressof(it)) % alignof(T) == 0 ? it.number() : -3;
  };
  if (way % 4 == 0) {
    const auto got = ch.recv();
    return got ? std::optional(number(*got)) : std::nullopt;
  }
  if (way % 4 == 1) return number(*ch.begin());
  for (;; ramie::yield()) {
    const auto got = way % 4 == 2 ? ch.recv_for(1h) : ch.try_recv();
    if (got) return number(*got);
    if (got.status() != channel_status::would_block) return std::nullopt;
  }
}

TEMPLATE_TEST_CASE("elements of every shape arrive as they were, in order", "[conformance][channel]", byte_sized,
                   addressless, three_bytes, eight_bytes, move_only, large, aligned_bytes, aligned_object, unassignable,
                   short_text) {
  for (const std::size_t capacity : {0u, 1u, 2u, 3u, 128u}) {
    INFO("capacity " << capacity);
    everywhere("100 in order, then nothing", [capacity](others& them) {
      const channel<TestType> ch(capacity);
      them.spawn([&] {
        for (int i = 0; i < 100; ++i) send_somehow(ch, TestType(i), i);
        ch.close();
      });
      // At a rendezvous two that only try never meet: where the sender does, the receiver waits.
      int right = 0;
      for (int i = 0; i < 100; ++i) right += receive_somehow(ch, i % 3 == 2 ? i / 3 * 2 : i) == i;
      const bool over = !receive_somehow(ch, 0) && !receive_somehow(ch, 2) && !receive_somehow(ch, 3);
      them.join();
      return note(right, "in order, then", over ? "nothing" : "something");
    });
  }
  CHECK(aligned_object::misplaced.load() == 0);
}

// --- What becomes of them ---

TEST_CASE("a refused element is still the sender's", "[conformance][channel]") {
  everywhere("false 1 closed 1 closed 1 closed 1", [](others&) {
    const channel<element> ch(4);
    ch.close();
    element mine = make(1);
    const bool a = ch.send(std::move(mine));
    const auto after_a = note(mine);
    const auto b = ch.try_send(std::move(mine));
    const auto after_b = note(mine);
    const auto c = ch.send_for(std::move(mine), 1h);
    const auto after_c = note(mine);
    const auto d = ch.send_until(std::move(mine), std::chrono::steady_clock::time_point::max());
    return note(a, after_a, b, after_b, c, after_c, d, mine);
  });
}

TEST_CASE("an lvalue is copied, whatever becomes of the copy", "[conformance][channel]") {
  test::census people;
  {
    const channel<test::citizen> ch(2);
    const test::citizen one(people);
    CHECK(ch.send(one));
    CHECK(ch.try_send(one) == channel_status::ok);
    CHECK(people.alive() == 3);
    CHECK(ch.try_send(one) == channel_status::would_block);
    CHECK(ch.send_for(one, 0s) == channel_status::timed_out);
    ch.close();
    CHECK_FALSE(ch.send(one));
    CHECK(people.alive() == 3);
  }
  CHECK(people.alive() == 0);
}

TEST_CASE("what is left in a channel is destroyed with its last handle", "[conformance][channel]") {
  everywhere("5 then 0", [](others& them) {
    test::census people;
    using person = std::unique_ptr<test::citizen>;
    const auto somebody = [&] { return std::make_unique<test::citizen>(people); };
    channel_observer s;
    auto ch = channel<person>(3);
    for (int i = 0; i < 3; ++i) (void)ch.try_send(somebody());
    (void)ch.recv();
    (void)ch.recv();
    (void)ch.try_send(somebody());  // the ring has turned
    (void)ch.try_send(somebody());
    for (int i = 0; i < 2; ++i) them.spawn([&, mine = ch] { mine.send(somebody()); });
    s.wait_listed(2);
    ch.close();
    them.join();
    const auto before = people.alive();
    ch = {};
    return note(before, "then", people.alive());
  });
}

// Every object of the class, moved-from shells included.
struct shell {
  shell() { objects.fetch_add(1); }
  shell(shell&&) noexcept { objects.fetch_add(1); }
  shell(const shell&) = delete;
  ~shell() { objects.fetch_sub(1); }
  static inline std::atomic<long> objects{0};
};

TEST_CASE("what an element was moved out of is destroyed, too", "[conformance][channel]") {
  for (const std::size_t capacity : {0u, 1u, 3u}) {
    everywhere(note(capacity, "in the buffer, 2 behind, then 0"), [capacity](others& them) {
      channel_observer s;
      long buffered = 0, behind = 0;
      {
        const channel<shell> ch(capacity);
        std::atomic<bool> all_sent{false};
        them.spawn([&] {
          for (int i = 0; i < 20; ++i) ch.send(shell());
          all_sent.store(true);
        });
        for (int i = 0; i < 20; ++i)
          (void)(i % 2 == 0 ? ch.recv().has_value() : ch.recv_for(1h).status() == channel_status::ok);
        test::yield_until([&] { return all_sent.load(); });
        while (ch.try_send(shell()) == channel_status::ok) {
        }
        buffered = shell::objects.load();
        const int before = s.listed();
        for (int i = 0; i < 2; ++i) them.spawn([&] { ch.send(shell()); });
        s.wait_listed(before + 2);
        ch.close();
        them.join();
        behind = shell::objects.load() - buffered;
      }
      return note(buffered, "in the buffer,", behind, "behind, then", shell::objects.load());
    });
  }
}

TEST_CASE("a loop over a channel may move elements out, and may be left", "[conformance][channel]") {
  everywhere("1 2 3 | 4 5", [](others&) {
    const channel<element> ch(8);
    for (int i = 1; i <= 5; ++i) (void)ch.try_send(make(i));
    ch.close();
    std::vector<element> kept;
    for (element& it : ch) {
      kept.push_back(std::move(it));
      if (kept.size() == 3) break;
    }
    std::string rest;
    for (const element& it : ch) rest += note("", it);
    return note(kept[0], kept[1], kept[2], "|") + rest;
  });
}

// --- Handles ---

TEST_CASE("a channel tells how much is in it, how much would fit, and whether it is closed", "[conformance][channel]") {
  for (const std::size_t capacity : {0u, 1u, 2u, 3u, 128u}) {
    const channel<int> ch(capacity);
    CHECK(ch.capacity() == capacity);
    for (std::size_t round = 0; round < 3; ++round) {
      for (std::size_t i = 0; i < capacity; ++i) {
        CHECK(ch.size() == i);
        CHECK(ch.try_send(1) == channel_status::ok);
      }
      CHECK(ch.try_send(1) == channel_status::would_block);
      CHECK(ch.size() == capacity);
      for (std::size_t i = 0; i < capacity - (round == 2 && capacity > 0); ++i) CHECK(ch.try_recv());
    }
    CHECK_FALSE(ch.is_closed());
    ch.close();
    CHECK(ch.is_closed());
    CHECK(ch.size() == (capacity > 0 ? 1 : 0));
    auto ends = ramie::make_channel<int>(capacity);
    CHECK(ends.tx.capacity() == capacity);
    CHECK(ends.rx.size() == 0);
    ends.tx.close();
    CHECK(ends.rx.is_closed());
  }
}

TEST_CASE("a capacity nobody has memory for is std::bad_alloc", "[conformance][channel][memory]") {
  constexpr auto most = std::numeric_limits<std::size_t>::max();
  for (const std::size_t capacity : {most, most - 1, most / 2, most / 4}) {
    CHECK_THROWS_AS(channel<int>(capacity), std::bad_alloc);
    CHECK_THROWS_AS(ramie::make_channel<aligned_object>(capacity), std::bad_alloc);
    CHECK_THROWS_AS(channel<large>(capacity / 64), std::bad_alloc);
  }
  if (test::sanitized || test::under_valgrind()) return;  // they end the process
  CHECK_THROWS_AS(channel<char>(most / 4), std::bad_alloc);
  CHECK_THROWS_AS(channel<int>(most / 16), std::bad_alloc);
}

template <class Handle>
void check_answers_refused(const Handle& h) {
  CHECK_THROWS_AS(h.size(), usage_error);
  CHECK_THROWS_AS(h.capacity(), usage_error);
  CHECK_THROWS_AS(h.is_closed(), usage_error);
}
template <class Handle>
void check_sends_refused(const Handle& h) {
  element mine = make(1);
  CHECK_FALSE(h.valid());
  CHECK_THROWS_AS(h.send(std::move(mine)), usage_error);
  CHECK_THROWS_AS(h.try_send(std::move(mine)), usage_error);
  CHECK_THROWS_AS(h.send_for(std::move(mine), 1s), usage_error);
  CHECK_THROWS_AS(h.close(), usage_error);
  CHECK_THROWS_AS(h.close(nullptr), usage_error);
  CHECK(note(mine) == "1");
  check_answers_refused(h);
}
template <class Handle>
void check_receives_refused(const Handle& h) {
  CHECK_FALSE(h.valid());
  CHECK_THROWS_AS(h.recv(), usage_error);
  CHECK_THROWS_AS(h.try_recv(), usage_error);
  CHECK_THROWS_AS(h.recv_for(1s), usage_error);
  CHECK_THROWS_AS(h.begin(), usage_error);
  check_answers_refused(h);
}

TEST_CASE("a handle without a channel refuses everything", "[conformance][channel][misuse]") {
  const channel<element> nothing;
  check_sends_refused(nothing);
  check_receives_refused(nothing);
  channel<element> former(1);
  const channel<element> now = std::move(former);
  check_sends_refused(former);
  auto ends = ramie::make_channel<element>(1);
  auto moved = ramie::make_channel<element>(1);
  const auto tx = std::move(moved.tx);
  const auto rx = std::move(moved.rx);
  CHECK_FALSE(rx.is_closed());  // a moved end counts once
  check_sends_refused(moved.tx);
  check_receives_refused(moved.rx);
  ends.tx.reset();
  ends.tx.reset();
  ends.rx.reset();
  check_sends_refused(ends.tx);
  check_receives_refused(ends.rx);
  check_sends_refused(ramie::sender<element>());
  check_receives_refused(ramie::receiver<element>());
}

TEST_CASE("copies of a handle are handles on one channel", "[conformance][channel]") {
  const channel<int> a(1), b(1), none;
  const channel<int> copy = a;
  CHECK(copy == a);
  CHECK(a != b);
  CHECK(a != none);
  CHECK(none == channel<int>());
  CHECK(copy.try_send(1) == channel_status::ok);
  CHECK(a.size() == 1);
  a.close();
  CHECK(copy.is_closed());
  CHECK_FALSE(b.is_closed());
}

TEST_CASE("what a receive found can be asked and taken", "[conformance][channel]") {
  const channel<short_text> ch(1);
  CHECK(ch.try_recv().status() == channel_status::would_block);
  CHECK_FALSE(ch.try_recv());
  CHECK_FALSE(ch.try_recv().has_value());
  (void)ch.try_send(short_text(7));
  auto got = ch.try_recv();
  REQUIRE(got);
  CHECK(got.status() == channel_status::ok);
  CHECK(got->number() == 7);
  CHECK((*std::as_const(got)).number() == 7);
  CHECK(got.value().number() == 7);
  CHECK(std::as_const(got).value().number() == 7);
  CHECK(got.lost() == 0);
  const short_text taken = *std::move(got);
  CHECK(taken.number() == 7);
  (void)ch.try_send(short_text(8));
  const short_text straight = ch.try_recv().value();
  CHECK(straight.number() == 8);
  (void)ch.try_send(short_text(9));
  CHECK(ch.recv_for(0s).to_optional()->number() == 9);
  CHECK_FALSE(ch.try_recv().to_optional());
  CHECK(note(channel_status::ok, channel_status::would_block, channel_status::closed, channel_status::timed_out) ==
        "ok would block closed timed out");
}

// What asking for the value of a receive says, and why.
template <class T>
std::pair<std::string, channel_status> refusal(ramie::received<T> got) {
  try {
    (void)got.value();
  } catch (const ramie::bad_received_access& e) {
    return {e.what(), e.status()};
  }
  return {"a value", channel_status::ok};
}

TEST_CASE("the value of a receive that found nothing is an exception that says why", "[conformance][channel]") {
  const channel<std::string> ch(1);
  const auto news = ramie::broadcast<std::string>(1);
  auto reader = news.subscribe();
  auto ends = ramie::make_oneshot<std::string>();
  const auto check = [](const auto& found, channel_status status, const char* word) {
    CHECK(found.second == status);
    CHECK(found.first.find("ramie: received::value: nothing was received") == 0);
    CHECK(found.first.find(word) != std::string::npos);
  };
  check(refusal(ch.try_recv()), channel_status::would_block, "have had to wait");
  check(refusal(reader.try_recv()), channel_status::would_block, "have had to wait");
  check(refusal(ends.rx.try_recv()), channel_status::would_block, "have had to wait");
  check(refusal(ch.recv_for(0s)), channel_status::timed_out, "time was up");
  check(refusal(reader.recv_for(0s)), channel_status::timed_out, "time was up");
  check(refusal(ends.rx.recv_for(0s)), channel_status::timed_out, "time was up");
  ch.close();
  news.close();
  ends.tx = {};
  check(refusal(ch.try_recv()), channel_status::closed, "closed");
  check(refusal(reader.recv()), channel_status::closed, "closed");
  check(refusal(ends.rx.recv_for(1h)), channel_status::closed, "closed");
  CHECK_THROWS_AS(ch.try_recv().value(), std::bad_optional_access);  // as of a std::optional
  CHECK_THROWS_AS(std::as_const(ch).try_recv().value(), ramie::bad_received_access);
}

}  // namespace conformance_channel_elements
