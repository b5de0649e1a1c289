// SPDX-License-Identifier: BSL-1.0
// The laws of support/random_program/ledger.hpp bite: a ledger that keeps them all, and one broken in each way; and plans are
// what their seed says.
#include <functional>
#include <string>
#include <vector>

#include <support/random_program/ledger.hpp>
#include <support/random_program/plan.hpp>
#include <support/test.hpp>

namespace unit_random_program_laws {

using namespace test::random_program;
using ramie::cancel_kind;

constexpr grounds asked{cancel_kind::requested, 7};
constexpr grounds late{cancel_kind::deadline, 0};
constexpr grounds failed{cancel_kind::sibling_failure, 1};

// Scopes: 0 the root, 1 in it, 2 a shield in 1, 3 in 2. Sender 5 and receivers 6 and 7 on channel 0, which was drained,
// and channel 1, which was not.
ledger sound() {
  ledger l;
  l.scopes = {{-1, false, 100}, {0, false, 90}, {1, true, 80}, {2, false, 70}};
  l.lives = {{0, 95}, {1, 85}, {3, 60}};
  l.causes = {{1, asked, 10}, {3, late, 20}, {0, failed, 25}};
  l.sightings = {{1, asked, 11}, {3, late, 30}, {1, failed, 26}};
  l.passages = {{3, 1}};  // the shield is in between
  l.letters = {{0, 5, 1, true, 1}, {0, 5, 2, true, 1}, {0, 5, 3, false, 1},
               {0, 5, 4, true, 1}, {1, 5, 5, true, 1}, {1, 5, 6, true, 1}};
  l.receipts = {{6, 0, 5, 1}, {6, 0, 5, 4}, {7, 0, 5, 2}, {7, 1, 5, 5}};
  l.drained = {0};
  l.thrown = {1, 3};
  l.received = {1};
  l.reported = {3};
  return l;
}

// The laws that complain about it, in the order of the complaints.
std::string broken_laws(const std::function<void(ledger&)>& harm) {
  ledger l = sound();
  harm(l);
  std::string laws;
  for (const auto& complaint : audit(l)) laws += complaint.substr(0, complaint.find(' ')) + " ";
  return laws;
}

TEST_CASE("the ledger's laws accept a sound program", "[unit][stress]") {
  for (const auto& complaint : audit(sound())) FAIL_CHECK(complaint);
}

TEST_CASE("the ledger's laws reject broken programs", "[unit][stress]") {
  SECTION("a letter is lost in a drained channel") {
    CHECK(broken_laws([](ledger& l) { l.receipts.erase(l.receipts.begin() + 1); }) == "LG3 ");
  }
  SECTION("a letter is lost in the middle of a channel that was not drained") {
    CHECK(broken_laws([](ledger& l) { l.receipts.back().number = 6; }) == "LG3 ");
  }
  SECTION("a letter comes twice: to one receiver, to two") {
    CHECK(broken_laws([](ledger& l) { l.receipts.insert(l.receipts.begin(), {6, 0, 5, 1}); }) == "LG1 LG2 ");
    CHECK(broken_laws([](ledger& l) { l.receipts.push_back({8, 0, 5, 1}); }) == "LG1 ");
  }
  SECTION("a letter comes from nowhere, or although its send failed") {
    CHECK(broken_laws([](ledger& l) { l.receipts.push_back({8, 0, 5, 9}); }) == "LG1 ");
    CHECK(broken_laws([](ledger& l) { l.receipts.push_back({8, 0, 5, 3}); }) == "LG1 ");
  }
  SECTION("letters of one sender are reordered") {
    CHECK(broken_laws([](ledger& l) { std::swap(l.receipts[0], l.receipts[1]); }) == "LG2 ");
  }
  SECTION("a letter leaks, or is destroyed twice") {
    CHECK(broken_laws([](ledger& l) { l.letters[0].destroyed = 0; }) == "LG4 ");
    CHECK(broken_laws([](ledger& l) { l.letters[5].destroyed = 2; }) == "LG4 ");
  }
  SECTION("a child outlives its scope, a scope the one around it, a scope is never left") {
    CHECK(broken_laws([](ledger& l) { l.lives[2].gone = 75; }) == "LG5 ");
    CHECK(broken_laws([](ledger& l) { l.scopes[3].left = 85; }) == "LG5 ");
    CHECK(broken_laws([](ledger& l) { l.scopes[3].left = 0; }) == "LG5 ");
  }
  SECTION("a cancellation without a cause: none, another one, a later one, one further in") {
    CHECK(broken_laws([](ledger& l) { l.causes.erase(l.causes.begin()); }) == "LG6 ");
    CHECK(broken_laws([](ledger& l) { l.causes[0].why.tag = 8; }) == "LG6 ");
    CHECK(broken_laws([](ledger& l) { l.sightings[1].why.kind = cancel_kind::shutdown; }) == "LG6 ");
    CHECK(broken_laws([](ledger& l) { l.sightings[0].when = 9; }) == "LG6 ");
    CHECK(broken_laws([](ledger& l) { l.sightings[0].scope = 0; }) == "LG6 ");
  }
  SECTION("a cancellation reaches through a shield") {
    CHECK(broken_laws([](ledger& l) { l.sightings.push_back({3, asked, 40}); }) == "LG6 ");
    CHECK(broken_laws([](ledger& l) { l.sightings.push_back({2, asked, 40}); }) == "LG6 ");
  }
  SECTION("a cancellation does not arrive") {
    CHECK(broken_laws([](ledger& l) { l.passages.push_back({1, 0}); }) == "LG7 ");
    CHECK(broken_laws([](ledger& l) { l.passages.push_back({3, 3}); }) == "LG7 ");
  }
  SECTION("a failure reaches nobody") {
    CHECK(broken_laws([](ledger& l) { l.thrown.push_back(2); }) == "LG8 ");
    CHECK(broken_laws([](ledger& l) { l.received.clear(); }) == "LG8 ");
  }
  SECTION("a failure is reported although somebody got it, or twice") {
    CHECK(broken_laws([](ledger& l) { l.reported.push_back(1); }) == "LG8 ");
    CHECK(broken_laws([](ledger& l) { l.reported.push_back(3); }) == "LG8 ");
  }
  SECTION("something was wrong on the spot") {
    CHECK(broken_laws([](ledger& l) { l.wrongs.push_back("LG9 a sum"); }) == "LG9 ");
  }
}

// All of a plan in numbers.
std::uint64_t digest(const std::vector<node>& steps) {
  std::uint64_t sum = steps.size();
  for (const node& n : steps) {
    for (const unsigned part : {static_cast<unsigned>(n.what), n.a, n.b, n.c, n.d})
      sum = sum * 1'099'511'628'211u + part;
    sum = sum * 31 + digest(n.inner);
  }
  return sum;
}

// PL5: whoever waits for ever is below a scope that is cancelled for sure, with no shield in between.
int uncertain(const std::vector<node>& steps, bool doomed) {
  int found = 0;
  for (const node& n : steps) {
    const bool by_time = n.what == act::limit && n.a != an_hour;
    const bool ends = n.what == act::brood && static_cast<brood_end>(n.b) != brood_end::none;
    if (n.what == act::forever && !doomed) ++found;
    if (n.what == act::brood && !n.inner.empty()) {
      found += uncertain({n.inner.front()}, doomed);  // the one that ends it
      found += uncertain({n.inner.begin() + 1, n.inner.end()}, doomed || ends);
    } else {
      const bool out_of_it = n.what == act::guard || n.what == act::sprout || n.what == act::thread;
      found += uncertain(n.inner, !out_of_it && (doomed || by_time));
    }
  }
  return found;
}

// PL2: a step uses only halls around it, and a hall's owner not its own.
int strangers(const std::vector<node>& steps, unsigned halls) {
  int found = 0;
  for (const node& n : steps) {
    const bool meets = n.what == act::send || n.what == act::recv || n.what == act::pick || n.what == act::close;
    if (meets && n.a >= halls) ++found;
    if (n.what != act::hall) {
      found += strangers(n.inner, halls);
      continue;
    }
    for (const node& part : n.inner) found += strangers(part.inner, part.what == act::body ? halls : halls + 1);
  }
  return found;
}

TEST_CASE("plans are what their seed says, and can't deadlock", "[unit][stress]") {
  CHECK(digest(planner(1, 300).make().steps) == digest(planner(1, 300).make().steps));
  CHECK(digest(planner(1, 300).make().steps) != digest(planner(2, 300).make().steps));
  test::dice d(42);
  CHECK(d() == 13'679'457'532'755'275'413u);  // the same on every platform
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    INFO("seed " << seed);
    const plan p = planner(seed, 500).make();
    CHECK(uncertain(p.steps, false) == 0);
    CHECK(strangers(p.steps, 0) == 0);
  }
}

}  // namespace unit_random_program_laws
