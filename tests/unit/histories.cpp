// SPDX-License-Identifier: BSL-1.0
// The checker of support/history.hpp can say yes and no: histories by hand, right ones and wrong ones.
#include <vector>

#include <support/history.hpp>
#include <support/test.hpp>

namespace unit_histories {

using namespace test::history;

// The stamps of an operation: invoked, returned.
struct during {
  std::uint32_t from, to;
};

// A history in the making, on channels of these capacities. Parties 0 to 7.
class story {
 public:
  explicit story(std::vector<std::uint8_t> capacities) : record_{std::move(capacities), {}} {}

  story& send(during when, std::uint8_t who, value element, ending how = ending::done, std::uint8_t channel = 0) {
    return add(when, who, patience::endless, {{true, channel, element}}, {how, 0, 0, false});
  }
  story& recv(during when, std::uint8_t who, value element, std::uint8_t channel = 0) {
    return add(when, who, patience::endless, {{false, channel, 0}}, {ending::done, 0, element, false});
  }
  story& recv_closed(during when, std::uint8_t who, std::uint8_t channel = 0) {
    return add(when, who, patience::endless, {{false, channel, 0}}, {ending::closed, 0, 0, false});
  }
  story& try_send(during when, std::uint8_t who, value element, ending how, std::uint8_t channel = 0) {
    return add(when, who, patience::none, {{true, channel, element}}, {how, 0, 0, false});
  }
  story& try_recv(during when, std::uint8_t who, ending how, value element = 0, std::uint8_t channel = 0) {
    return add(when, who, patience::none, {{false, channel, 0}}, {how, 0, element, false});
  }
  story& close(during when, std::uint8_t who, bool closed_it = true, std::uint8_t channel = 0) {
    add(when, who, patience::none, {{false, channel, 0}}, {ending::gave_up, 0, 0, closed_it});
    record_.operations.back().closes = true;
    return *this;
  }
  story& select(during when, std::uint8_t who, patience waits, std::vector<offer> offers, outcome result) {
    return add(when, who, waits, std::move(offers), result);
  }
  // The latest operation has happened by then.
  story& by(std::uint32_t stamp) {
    record_.operations.back().happened = stamp;
    return *this;
  }
  explicit operator bool() const { return static_cast<bool>(check(record_)); }

 private:
  story& add(during when, std::uint8_t who, patience waits, std::vector<offer> offers, outcome result) {
    record_.operations.push_back({who, false, waits, std::move(offers), result, when.from, 0, when.to});
    return *this;
  }
  record record_;
};

constexpr offer sends(std::uint8_t channel, value element) {
  return {true, channel, element};
}
constexpr offer receives(std::uint8_t channel) {
  return {false, channel, 0};
}

TEST_CASE("the history checker accepts what a channel may do", "[unit][channel]") {
  SECTION("a rendezvous, whoever comes first") {
    CHECK(story({0}).send({1, 4}, 0, 7).recv({2, 3}, 1, 7));
    CHECK(story({0}).send({2, 3}, 0, 7).recv({1, 4}, 1, 7));
  }
  SECTION("a buffer in order, and would_block at its ends") {
    CHECK(story({1})
              .send({1, 2}, 0, 7)
              .try_send({3, 4}, 0, 8, ending::gave_up)
              .recv({5, 6}, 1, 7)
              .try_recv({7, 8}, 1, ending::gave_up));
  }
  SECTION("a waiting sender moves up") {
    CHECK(story({1}).send({1, 2}, 0, 7).send({3, 6}, 1, 8).recv({4, 5}, 2, 7).recv({7, 8}, 2, 8));
  }
  SECTION("two senders that overlap, in either order") {
    CHECK(story({2}).send({1, 3}, 0, 7).send({2, 4}, 1, 8).recv({5, 6}, 2, 7).recv({7, 8}, 2, 8));
    CHECK(story({2}).send({1, 3}, 0, 7).send({2, 4}, 1, 8).recv({5, 6}, 2, 8).recv({7, 8}, 2, 7));
  }
  SECTION("a sender that waits at the close is kept for a receiver to come") {
    CHECK(story({0}).send({1, 4}, 0, 7).close({2, 3}, 1).recv({5, 6}, 2, 7).recv_closed({7, 8}, 2));
    CHECK(story({0}).send({1, 4}, 0, 7, ending::closed).close({2, 3}, 1).recv_closed({5, 6}, 2));
  }
  SECTION("elements of waiting senders come behind the buffer, whatever the capacity") {
    CHECK(story({1})
              .send({1, 2}, 0, 7)
              .send({3, 8}, 1, 8)
              .by(4)
              .send({5, 9}, 2, 9)
              .by(6)
              .close({7, 10}, 3)
              .recv({11, 12}, 0, 7)
              .recv({13, 14}, 0, 8)
              .recv({15, 16}, 0, 9)
              .recv_closed({17, 18}, 0));
  }
  SECTION("waiting receivers are told, a second close is harmless") {
    CHECK(story({2}).recv_closed({1, 4}, 0).close({2, 3}, 1).close({5, 6}, 1, false));
  }
  SECTION("a select takes any case that is ready") {
    for (const std::uint8_t chosen : {0, 1}) {
      const auto got = static_cast<value>(7 + chosen);
      CHECK(story({1, 1})
                .send({1, 2}, 0, 7, ending::done, 0)
                .send({3, 4}, 0, 8, ending::done, 1)
                .select({5, 6}, 1, patience::endless, {receives(0), receives(1)}, {ending::done, chosen, got, false}));
    }
  }
  SECTION("a select that waits is matched once, and gone elsewhere") {
    CHECK(story({0, 0})
              .select({1, 5}, 0, patience::endless, {receives(0), sends(1, 8)}, {ending::done, 0, 7, false})
              .by(2)
              .try_send({3, 4}, 1, 7, ending::done, 0)
              .try_recv({6, 7}, 1, ending::gave_up, 0, 1));
  }
  SECTION("between the two moments of a close, a select may still be matched elsewhere") {
    CHECK(story({0, 0})
              .select({1, 8}, 0, patience::endless, {sends(0, 7), receives(1)}, {ending::done, 1, 9, false})
              .by(2)
              .close({3, 9}, 1)
              .try_send({4, 5}, 2, 8, ending::closed, 0)
              .try_send({6, 7}, 2, 9, ending::done, 1)
              .recv_closed({10, 11}, 2));
  }
}

TEST_CASE("the history checker rejects what a channel must not do", "[unit][channel]") {
  SECTION("an element is lost") {
    CHECK_FALSE(story({1}).send({1, 2}, 0, 7).close({3, 4}, 0).recv_closed({5, 6}, 1));
    CHECK_FALSE(story({2}).send({1, 2}, 0, 7).send({3, 4}, 0, 8).recv({5, 6}, 1, 8));
  }
  SECTION("an element comes twice, or from nowhere") {
    CHECK_FALSE(story({1}).send({1, 2}, 0, 7).recv({3, 4}, 1, 7).recv({5, 6}, 1, 7));
    CHECK_FALSE(story({0}).send({1, 6}, 0, 7).recv({2, 4}, 1, 7).recv({3, 5}, 2, 7));  // two receivers
    CHECK_FALSE(story({1}).send({1, 2}, 0, 7).recv({3, 4}, 1, 8));
    CHECK_FALSE(story({1}).recv({1, 2}, 1, 7).send({3, 4}, 0, 7));
  }
  SECTION("elements of one sender are reordered") {
    CHECK_FALSE(story({2}).send({1, 2}, 0, 7).send({3, 4}, 0, 8).recv({5, 6}, 1, 8).recv({7, 8}, 1, 7));
    CHECK_FALSE(story({0}).send({1, 3}, 0, 7).send({4, 8}, 0, 8).recv({2, 7}, 1, 8).recv({5, 6}, 2, 7));
  }
  SECTION("waiting senders are not served in the order they came") {
    CHECK_FALSE(story({0}).send({1, 8}, 0, 7).by(2).send({3, 6}, 1, 8).by(4).recv({5, 7}, 2, 8));
    CHECK_FALSE(story({0}).recv({1, 8}, 0, 7).by(2).recv({3, 6}, 1, 8).by(4).send({5, 7}, 2, 8).send({9, 10}, 2, 7));
  }
  SECTION("an element after closed and drained") {
    CHECK_FALSE(story({1}).send({1, 8}, 0, 7).close({2, 3}, 1).recv_closed({4, 5}, 1).recv({6, 7}, 1, 7));
  }
  SECTION("closed, but nobody has closed it; or not closed although it is") {
    CHECK_FALSE(story({1}).recv_closed({1, 2}, 0).close({3, 4}, 0));
    CHECK_FALSE(story({1}).send({1, 2}, 0, 7, ending::closed));
    CHECK_FALSE(story({1}).close({1, 2}, 0).try_recv({3, 4}, 0, ending::gave_up));
    CHECK_FALSE(story({1}).close({1, 2}, 0).close({3, 4}, 0));
  }
  SECTION("a send is accepted after the close") {
    CHECK_FALSE(story({0}).close({1, 2}, 0).send({3, 4}, 1, 7));
    CHECK_FALSE(story({3}).close({1, 2}, 0).send({3, 4}, 1, 7).recv({5, 6}, 0, 7));
    CHECK_FALSE(story({0}).close({1, 2}, 0).send({3, 6}, 1, 7).recv({4, 5}, 0, 7));
  }
  SECTION("a send waits at the close, is accepted, and its element never comes") {
    CHECK_FALSE(story({0}).send({1, 4}, 0, 7).close({2, 3}, 1).recv_closed({5, 6}, 2));
  }
  SECTION("a send that was waiting at the close is refused") {
    CHECK_FALSE(story({0}).send({1, 5}, 0, 7, ending::closed).by(2).close({3, 4}, 1));
  }
  SECTION("would_block although an element, or room, was certainly there") {
    CHECK_FALSE(story({1}).send({1, 2}, 0, 7).try_recv({3, 4}, 1, ending::gave_up).recv({5, 6}, 1, 7));
    CHECK_FALSE(story({1}).try_send({1, 2}, 0, 7, ending::gave_up));
    CHECK_FALSE(story({0}).recv({1, 6}, 0, 8).by(2).try_send({3, 4}, 1, 7, ending::gave_up).send({5, 7}, 1, 8));
  }
  SECTION("more than there is room for") {
    CHECK_FALSE(story({0}).send({1, 2}, 0, 7).recv({3, 4}, 1, 7));
    CHECK_FALSE(story({1}).send({1, 2}, 0, 7).try_send({3, 4}, 0, 8, ending::done).recv({5, 6}, 1, 7));
  }
  SECTION("into the buffer although a receiver waits") {
    CHECK_FALSE(story({1}).recv({1, 9}, 0, 8).by(2).send({3, 4}, 1, 7).recv({5, 6}, 2, 7).send({7, 8}, 1, 8));
  }
  SECTION("a select does two things, or meets itself, or gives up although a case was ready") {
    CHECK_FALSE(story({0, 0})
                    .select({1, 8}, 0, patience::endless, {receives(0), sends(1, 8)}, {ending::done, 0, 7, false})
                    .try_send({2, 3}, 1, 7, ending::done, 0)
                    .try_recv({4, 5}, 1, ending::done, 8, 1));
    CHECK_FALSE(
        story({0}).select({1, 2}, 0, patience::endless, {receives(0), sends(0, 8)}, {ending::done, 0, 8, false}));
    CHECK_FALSE(story({1, 1})
                    .send({1, 2}, 0, 7, ending::done, 0)
                    .select({3, 4}, 1, patience::none, {receives(0), receives(1)}, {}));
    CHECK_FALSE(story({1, 1})  // each was empty at some moment, but never both
                    .send({1, 2}, 0, 7, ending::done, 0)
                    .select({3, 8}, 1, patience::none, {receives(0), receives(1)}, {})
                    .send({4, 5}, 0, 8, ending::done, 1)
                    .recv({6, 7}, 2, 7, 0));
  }
  SECTION("a select that waits is passed by, in one of its channels") {
    CHECK_FALSE(story({1, 0})
                    .select({1, 9}, 0, patience::endless, {receives(0), receives(1)}, {ending::done, 1, 8, false})
                    .by(2)
                    .send({3, 4}, 1, 7, ending::done, 0)
                    .send({5, 6}, 1, 8, ending::done, 1)
                    .recv({7, 8}, 1, 7, 0));
  }
}

}  // namespace unit_histories
