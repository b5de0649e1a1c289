// SPDX-License-Identifier: BSL-1.0
// The model of support/sync_history.hpp can say yes and no: histories by hand, right ones and wrong ones.
#include <cstdint>
#include <vector>

#include <support/sync_history.hpp>
#include <support/test.hpp>

namespace unit_sync_histories {

using namespace test::sync_history;

// The stamps of an operation: invoked, returned.
struct during {
  std::uint32_t from, to;
};

constexpr auto gave_up = ending::gave_up, cut_short = ending::cut_short;

// A history in the making, with so many permits.
class story {
 public:
  explicit story(std::uint32_t permits = 0) : permits_(permits) {}

  story& lock(during when, std::uint8_t who) { return add(when, who, act::lock, patience::endless); }
  story& try_lock(during when, std::uint8_t who, ending how = ending::done) {
    return add(when, who, act::lock, patience::none, how);
  }
  story& unlock(during when, std::uint8_t who) { return add(when, who, act::unlock, patience::endless); }
  story& wait(during when, std::uint8_t who, ending how = ending::done) {
    return add(when, who, act::wait, how == gave_up ? patience::some : patience::endless, how);
  }
  story& notify_one(during when, std::uint8_t who) { return add(when, who, act::notify_one, patience::endless); }
  story& notify_all(during when, std::uint8_t who) { return add(when, who, act::notify_all, patience::endless); }
  story& acquire(during when, std::uint8_t who, std::uint8_t count, ending how = ending::done) {
    return add(when, who, act::acquire, how == gave_up ? patience::some : patience::endless, how, count);
  }
  story& try_acquire(during when, std::uint8_t who, std::uint8_t count, ending how = ending::done) {
    return add(when, who, act::acquire, patience::none, how, count);
  }
  story& release(during when, std::uint8_t who, std::uint8_t count) {
    return add(when, who, act::release, patience::endless, ending::done, count);
  }
  story& cancel(during when, std::uint8_t who) { return add(when, who, act::cancel, patience::endless); }
  // Party `who` locks and waits. From then on it is listed for whoever has locked the mutex since.
  story& lock_and_wait(during when, std::uint8_t who, ending how = ending::done) {
    return lock({when.from, when.from + 1}, who).wait({when.from + 2, when.to}, who, how);
  }
  // Party `who` has the mutex for a moment.
  story& visit(std::uint32_t from, std::uint8_t who) {
    return lock({from, from + 1}, who).unlock({from + 2, from + 3}, who);
  }
  explicit operator bool() const { return static_cast<bool>(check(permits_, history_)); }

 private:
  story& add(during when, std::uint8_t who, act what, patience waits, ending how = ending::done,
             std::uint8_t count = 1) {
    history_.push_back({who, what, waits, count, how, when.from, 0, when.to});
    return *this;
  }
  const std::uint32_t permits_;
  std::vector<operation> history_;
};

TEST_CASE("the history checker accepts what locks may do", "[unit][sync]") {
  SECTION("one after the other, or one that gives up") {
    CHECK(story().lock({1, 2}, 0).lock({3, 6}, 1).unlock({4, 5}, 0).unlock({7, 8}, 1));
    CHECK(story().lock({1, 2}, 0).try_lock({3, 4}, 1, gave_up).unlock({5, 6}, 0).try_lock({7, 8}, 1));
    CHECK(story().try_lock({1, 4}, 1, gave_up).lock({2, 5}, 0));  // perhaps it was locked just before
  }
  SECTION("the longest waiter is notified, and has the mutex again when it is free") {
    CHECK(story()
              .lock_and_wait({1, 14}, 0)
              .lock_and_wait({4, 20}, 1)
              .lock({7, 8}, 2)
              .notify_one({9, 10}, 2)
              .unlock({11, 12}, 2)
              .unlock({15, 16}, 0)
              .notify_all({17, 18}, 2)
              .unlock({21, 22}, 1));
  }
  SECTION("who is too late or cancelled leaves the notification to the next") {
    for (const auto how : {gave_up, cut_short}) {
      CHECK(story()
                .lock_and_wait({1, 20}, 0, how)
                .lock_and_wait({4, 14}, 1)
                .visit(7, 2)
                .notify_one({11, 12}, 2)
                .unlock({15, 16}, 1)
                .unlock({21, 22}, 0));
    }
  }
  SECTION("a cancelled wait may not have begun") {
    CHECK(story().lock({1, 2}, 0).wait({3, 6}, 0, cut_short).try_lock({4, 5}, 1, gave_up).unlock({7, 8}, 0));
  }
  SECTION("a cancellation of others wakes for nothing, once") {
    CHECK(story().lock_and_wait({1, 6}, 0).cancel({4, 5}, 1).unlock({7, 8}, 0));
    CHECK(story(1).acquire({1, 9}, 0, 2).cancel({2, 3}, 2).acquire({4, 5}, 1, 1).release({6, 7}, 1, 2));
    CHECK(story(2)  // away while one permit is taken, and back when the other is refused
              .acquire({1, 10}, 0, 3, gave_up)
              .cancel({2, 3}, 2)
              .try_acquire({4, 5}, 1, 1)
              .try_acquire({6, 7}, 1, 1, gave_up));
  }
  SECTION("a notification that nobody waits for is nobody's") {
    CHECK(story().notify_one({1, 2}, 1).lock_and_wait({3, 8}, 0, gave_up).unlock({9, 10}, 0));
  }
  SECTION("permits are dealt out from the front") {
    CHECK(story(1).acquire({1, 6}, 0, 2).release({2, 5}, 1, 1).try_acquire({7, 8}, 1, 1, gave_up));
    CHECK(story(1).acquire({1, 8}, 0, 2, gave_up).try_acquire({2, 3}, 1, 1, gave_up).acquire({4, 9}, 1, 1));
    CHECK(story(1).acquire({1, 8}, 0, 2, cut_short).try_acquire({2, 3}, 1, 1, gave_up).acquire({9, 10}, 1, 1));
  }
  SECTION("a try fails beside one that is just coming") {
    CHECK(story(2).acquire({1, 4}, 0, 1).try_acquire({2, 3}, 1, 1, gave_up));
  }
}

TEST_CASE("the history checker rejects what locks must not do", "[unit][sync]") {
  SECTION("two hold the mutex, or it is unlocked by another") {
    CHECK_FALSE(story().lock({1, 2}, 0).lock({3, 4}, 1));
    CHECK_FALSE(story().lock({1, 2}, 0).try_lock({3, 4}, 1).unlock({5, 6}, 0));
    CHECK_FALSE(story().lock({1, 2}, 0).unlock({3, 4}, 1));
  }
  SECTION("a try fails although the mutex is certainly free") {
    CHECK_FALSE(story().try_lock({1, 2}, 0, gave_up));
    CHECK_FALSE(story().lock({1, 2}, 0).unlock({3, 4}, 0).try_lock({5, 6}, 1, gave_up));
  }
  SECTION("a wait does not let go of the mutex, or ends without it") {
    CHECK_FALSE(story().lock_and_wait({1, 9}, 0, gave_up).try_lock({10, 11}, 1));
    CHECK_FALSE(story().lock_and_wait({1, 6}, 0, gave_up).lock({4, 5}, 1));
    CHECK_FALSE(story().wait({1, 2}, 0, gave_up));  // it did not have it
  }
  SECTION("a wait ends without a notification, or by one that came before it") {
    CHECK_FALSE(story().lock_and_wait({1, 4}, 0));
    CHECK_FALSE(story().notify_all({1, 2}, 1).lock_and_wait({3, 6}, 0));
    CHECK_FALSE(story().cancel({1, 2}, 1).lock_and_wait({3, 6}, 0));
  }
  SECTION("one notification ends two waits") {
    CHECK_FALSE(story()
                    .lock_and_wait({1, 14}, 0)
                    .lock_and_wait({4, 18}, 1)
                    .visit(7, 2)
                    .notify_one({11, 12}, 2)
                    .unlock({15, 16}, 0));
  }
  SECTION("the second in the line is notified before the first") {
    CHECK_FALSE(story()
                    .lock_and_wait({1, 20}, 0)
                    .lock_and_wait({4, 14}, 1)
                    .visit(7, 2)
                    .notify_one({11, 12}, 2)
                    .unlock({15, 16}, 1)
                    .notify_one({17, 18}, 2));
  }
  SECTION("a notification goes with one that is cancelled, and the other is too late") {
    CHECK_FALSE(story()
                    .lock_and_wait({1, 14}, 0, cut_short)
                    .unlock({15, 16}, 0)
                    .lock_and_wait({17, 28}, 1, gave_up)
                    .visit(20, 2)
                    .notify_one({24, 25}, 2)
                    .visit(30, 2)
                    .lock_and_wait({34, 40}, 2));
    CHECK_FALSE(story()  // listed since 10 at the latest, notified, and yet too late without leaving in between
                    .lock_and_wait({1, 18}, 0)
                    .lock_and_wait({4, 30}, 1)
                    .visit(7, 2)
                    .notify_one({11, 12}, 2)
                    .unlock({19, 20}, 0)
                    .notify_one({21, 22}, 2)
                    .unlock({31, 32}, 1)
                    .lock_and_wait({33, 40}, 1));
  }
  SECTION("more permits than there are") {
    CHECK_FALSE(story(1).acquire({1, 2}, 0, 2));
    CHECK_FALSE(story(1).acquire({1, 2}, 0, 1).acquire({3, 4}, 1, 1));
    CHECK_FALSE(story(0).acquire({1, 4}, 0, 1).acquire({2, 5}, 1, 1).release({3, 6}, 2, 1));
  }
  SECTION("permits that go with one that leaves") {
    CHECK_FALSE(story(0).release({1, 2}, 1, 1).acquire({3, 4}, 0, 1, gave_up));
    CHECK_FALSE(story(0).acquire({1, 4}, 0, 1, gave_up).release({2, 3}, 1, 1).try_acquire({5, 6}, 1, 1, gave_up));
  }
  SECTION("a permit slips past one that waits") {
    CHECK_FALSE(story(1).acquire({1, 2}, 2, 1).acquire({3, 12}, 0, 1).acquire({4, 5}, 1, 1).release({6, 7}, 2, 1));
  }
  SECTION("a try fails although there are enough, and nobody is near") {
    CHECK_FALSE(story(1).try_acquire({1, 2}, 0, 1, gave_up));
  }
}

}  // namespace unit_sync_histories
