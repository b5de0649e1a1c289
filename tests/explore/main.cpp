// SPDX-License-Identifier: BSL-1.0
// Explores scenarios and says how far it got. Exit code 1, and what replays it, when one fails.
//
//   ramie-explore [--list] [--quick] [--seeded N] [--seed S] [--bound P] [scenario …]
//   ramie-explore --replay TEXT scenario
//   ramie-explore --sites | --orders [scenario …]
//   ramie-explore --weaken            reads "SITE -> ORDER @ scenario" lines (@ *: all), says for each who notices
//
// Every scenario: exhaustively as far as its entry says, sequentially consistent and then with old values; then
// --seeded schedules by random walk and as many by priorities (default 1,000; from seed S). --quick: one preemption
// less each. --bound: another number of preemptions, exhaustively. RAMIE_TEST_SIZE=large: one more preemption each,
// half a million schedules of each kind, and a hundred times the executions where not all are looked at.
//
// --sites: the memory orders that the scenarios come by, and what is weaker. --orders: each of them weakened, one at a
// time; says which scenario notices, or that none does (spec/memory-orders.md says why that is).
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <explore/sites.hpp>

#include "scenarios.hpp"

namespace {

using namespace explore;

struct request {
  bool list = false, sites = false, orders = false, weaken = false;
  bool only_weak = false;  // nothing that an order could not change
  std::uint64_t seeded = 1'000;
  std::uint64_t seed = 1;
  unsigned bound = 0;
  int extra = 0;  // preemptions
  std::string replay;
  std::vector<std::string> names;
};

request parse(int argc, char** argv) {
  request r;
  const char* const size = std::getenv("RAMIE_TEST_SIZE");
  if (size != nullptr && std::strcmp(size, "large") == 0) {
    r.extra = 1;
    r.seeded = 500'000;
  }
  for (int i = 1; i < argc; ++i) {
    const std::string a = argv[i];
    const auto number = [&] { return std::strtoull(i + 1 < argc ? argv[++i] : "0", nullptr, 10); };
    if (a == "--list") {
      r.list = true;
    } else if (a == "--quick") {
      r.extra = -1;
      r.seeded = 250;
    } else if (a == "--sites") {
      r.sites = true;
    } else if (a == "--orders") {
      r.orders = true;
    } else if (a == "--seeded") {
      r.seeded = number();
    } else if (a == "--seed") {
      r.seed = number();
    } else if (a == "--bound") {
      r.bound = static_cast<unsigned>(number());
    } else if (a == "--weaken") {
      r.weaken = true;
    } else if (a == "--replay") {
      r.replay = i + 1 < argc ? argv[++i] : "";
    } else {
      r.names.push_back(a);
    }
  }
  return r;
}

// How a search is set up, in front of what replays an execution of it.
std::string setup_of(const limits& l) {
  char text[64];
  std::snprintf(text, sizeof text, "p%us%um%d/", l.preemptions, l.stale, l.membarrier ? 1 : 0);
  return text;
}

struct sums {
  std::uint64_t exact = 0, weak = 0, seeded = 0;
  bool complete = true;
  bool met_fences = false;  // by the last search
  std::string failure;
};

unsigned at_least_one(unsigned preemptions, int more) {
  const int sum = static_cast<int>(preemptions) + more;
  return sum < 1 ? 1 : static_cast<unsigned>(sum);
}

// False: it failed.
bool search(const entry& e, const limits& within, std::uint64_t& count, sums& all) {
  const report r = run(e.make, within);
  count += r.executions;
  all.met_fences = r.met_fences;
  if (within.how == strategy::exhaustive && !r.exhausted) all.complete = false;
  if (!r.failure.empty()) all.failure = r.failure + " (--replay " + setup_of(within) + r.replay + ")";
  return r.failure.empty();
}

// With membarrier, and without it where that makes a difference: old values, and fences to keep them away.
bool search_both(const entry& e, limits within, std::uint64_t& count, sums& all) {
  if (!search(e, within, count, all)) return false;
  within.membarrier = false;
  return e.stale == 0 || !all.met_fences || search(e, within, count, all);
}

void explore_entry(const entry& e, const request& how, sums& all) {
  limits l;
  if (e.most != 0) l.executions = how.extra > 0 ? 100 * e.most : e.most;
  l.preemptions = how.bound != 0 ? how.bound : at_least_one(e.preemptions, how.extra);
  if (!how.only_weak && !search(e, l, all.exact, all)) return;
  l.preemptions = at_least_one(e.weak_preemptions, how.extra);
  l.stale = e.stale;
  if (e.stale != 0 && !search_both(e, l, all.weak, all)) return;
  for (const auto kind : {strategy::random, strategy::pct}) {
    const limits s{kind, 3, e.stale, true, how.seed, how.seeded, {}};
    if (how.seeded != 0 && !search_both(e, s, all.seeded, all)) return;
  }
}

bool report_on(const entry& e, const request& how) {
  using clock = std::chrono::steady_clock;
  const auto start = clock::now();
  sums all;
  explore_entry(e, how, all);
  const auto total = all.exact + all.weak + all.seeded;
  const std::chrono::duration<double> took = clock::now() - start;
  std::printf("%-26s %9llu interleavings (%llu exact, %llu with old values, %llu seeded), %.0f k/s, %s: %s\n", e.name,
              static_cast<unsigned long long>(total), static_cast<unsigned long long>(all.exact),
              static_cast<unsigned long long>(all.weak), static_cast<unsigned long long>(all.seeded),
              static_cast<double>(total) / took.count() / 1000,
              all.complete ? (std::to_string(how.bound != 0 ? how.bound : at_least_one(e.preemptions, how.extra)) +
                              " preemptions exhausted")
                                 .c_str()
                           : "not exhausted",
              all.failure.empty() ? "holds" : all.failure.c_str());
  std::fflush(stdout);
  return all.failure.empty();
}

int replay(const entry& e, const std::string& text) {
  limits l;
  char membarrier = '1';
  const auto slash = text.find('/');
  if (slash == std::string::npos ||
      std::sscanf(text.c_str(), "p%us%um%c", &l.preemptions, &l.stale, &membarrier) != 3) {
    std::printf("not something that can be replayed: %s\n", text.c_str());
    return 2;
  }
  l.membarrier = membarrier == '1';
  l.replay = text.substr(slash + 1);
  const report r = run(e.make, l);
  std::printf("%s: %s\n", e.name, r.failure.empty() ? "holds" : r.failure.c_str());
  return r.failure.empty() ? 0 : 1;
}

using meetings = std::map<std::string, std::pair<order_site, std::vector<const entry*>>>;

// Which orders the scenarios come by, and which scenarios do.
meetings find_sites(const list& scenarios) {
  std::map<std::tuple<std::string, unsigned, unsigned, access_kind>, std::pair<order_site, std::vector<const entry*>>>
      found;
  for (const entry& e : scenarios) {
    collect_sites(true);
    (void)run(e.make, {strategy::random, 3, e.stale, true, 1, 30, {}});
    collect_sites(false);
    for (const auto& site : take_sites()) {
      found.try_emplace({site.file, site.line, site.column, site.kind}, site, std::vector<const entry*>{})
          .first->second.second.push_back(&e);
    }
  }
  meetings named;
  std::map<std::string, unsigned> last;
  for (auto& [where, known] : found) {
    known.first.ordinal = 0;
    known.first.ordinal = ++last[known.first.name()];
    named.emplace(known.first.name(), known);
  }
  return named;
}

// What the first scenario says that fails with the order weakened; empty: none does.
std::string who_notices(const order_site& site, std::memory_order to, const std::vector<const entry*>& meet_it) {
  std::string said;
  weaken(&site, to);
  for (const entry* e : meet_it) {
    sums all;
    request how;
    how.only_weak = true;
    explore_entry(*e, how, all);
    if (all.failure.empty()) continue;
    said = std::string(e->name) + ": " + all.failure;
    break;
  }
  weaken(nullptr, to);
  return said;
}

int list_sites(const list& scenarios) {
  for (const auto& [name, known] : find_sites(scenarios)) {
    for (const auto to : known.first.weaker()) std::printf("%s -> %s\n", name.c_str(), name_of(to));
  }
  return 0;
}

int weaken_all(const list& scenarios) {
  for (const auto& [name, known] : find_sites(scenarios)) {
    for (const auto to : known.first.weaker()) {
      const auto said = who_notices(known.first, to, known.second);
      std::printf("%s -> %s: %s (line %u)\n", name.c_str(), name_of(to), said.empty() ? "NOT NOTICED" : said.c_str(),
                  known.first.line);
      std::fflush(stdout);
    }
  }
  return 0;
}

std::string weaken_one(const meetings& sites, const list& scenarios, const std::string& line) {
  const auto arrow = line.find(" -> "), at = line.find(" @ ");
  if (arrow == std::string::npos || at == std::string::npos) return "not a line I understand";
  const auto known = sites.find(line.substr(0, arrow));
  if (known == sites.end()) return "no scenario comes by it";
  const std::string order = line.substr(arrow + 4, at - arrow - 4), wanted = line.substr(at + 3);
  std::vector<const entry*> chosen = known->second.second;
  if (wanted != "*") {
    chosen.clear();
    for (const entry& e : scenarios) {
      if (wanted == e.name) chosen.push_back(&e);
    }
  }
  for (const auto to : known->second.first.weaker()) {
    if (order != name_of(to)) continue;
    const auto said = who_notices(known->second.first, to, chosen);
    return said.empty() ? "not noticed" : "noticed by " + said;
  }
  return order + " is not weaker";
}

int weaken_by_line(const list& scenarios) {
  const auto sites = find_sites(scenarios);
  char line[512];
  while (std::fgets(line, sizeof line, stdin) != nullptr) {
    std::string text = line;
    while (!text.empty() && text.back() == '\n') text.pop_back();
    std::puts(weaken_one(sites, scenarios, text).c_str());
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const request how = parse(argc, argv);
  int failed = 0;
  std::size_t found = 0;
  list chosen;
  for (const entry& e : all_scenarios()) {
    if (how.list) std::puts(e.name);
    bool wanted = !how.list && how.names.empty();
    for (const auto& name : how.names) wanted = wanted || name == e.name;
    if (!wanted) continue;
    ++found;
    if (!how.replay.empty()) return replay(e, how.replay);
    if (how.sites || how.orders || how.weaken) {
      chosen.push_back(e);
    } else if (!report_on(e, how)) {
      ++failed;
    }
  }
  if (found < how.names.size()) {
    std::puts("no such scenario (--list names them)");
    return 2;
  }
  if (how.sites) return list_sites(chosen);
  if (how.orders) return weaken_all(chosen);
  if (how.weaken) return weaken_by_line(chosen);
  return failed == 0 ? 0 : 1;
}
