// SPDX-License-Identifier: BSL-1.0
// The transitions of a fiber's word: each alone, from a word that is put back by a plain store (the first row, to be
// taken off the others), and in the cycles that fibers go through.
#include "micro.hpp"

#include <cstring>
#include <string>

#include "runtime/src/task/state.hpp"

namespace {

using namespace ramie::runtime_internal;
using micro::doNotOptimizeAway;

constexpr std::uint16_t ticket = 7;

class words_of {
 public:
  explicit words_of(micro::Bench& bench) : bench_(bench) {}

  // `path` leads from RUNNABLE to where `step` begins.
  template <class Path, class Step>
  void alone(const char* name, Path path, Step step) {
    fiber_word before, w;
    before.init_to_runnable(0);
    path(before);
    bench_.run(name, [&] {
      std::memcpy(static_cast<void*>(&w), &before, sizeof w);
      step(w);
    });
  }
  // `round` leads from RUNNABLE to RUNNABLE.
  template <class Round>
  void cycle(const char* name, Round round) {
    fiber_word w;
    w.init_to_runnable(0);
    bench_.run(name, [&] { round(w); });
  }

 private:
  micro::Bench& bench_;
};

void run(fiber_word& w) {
  w.runnable_to_running();
}
void park(fiber_word& w) {
  run(w);
  w.running_to_parking(ticket);
}
void commit(fiber_word& w) {
  park(w);
  doNotOptimizeAway(w.commit_park());
}
void claim(fiber_word& w) {
  commit(w);
  doNotOptimizeAway(w.claim(ticket));
}

void each_alone(words_of all) {
  all.alone("nothing", run, [](fiber_word&) {});
  all.alone(
      "runnable_to_running", [](fiber_word&) {}, [](fiber_word& w) { w.runnable_to_running(); });
  all.alone("running_to_runnable", run, [](fiber_word& w) { w.running_to_runnable(); });
  all.alone("running_to_parking", run, [](fiber_word& w) { w.running_to_parking(ticket); });
  all.alone("parking_to_running", park, [](fiber_word& w) { doNotOptimizeAway(w.parking_to_running()); });
  all.alone("commit_park", park, [](fiber_word& w) { doNotOptimizeAway(w.commit_park()); });
  all.alone("claim", commit, [](fiber_word& w) { doNotOptimizeAway(w.claim(ticket)); });
  all.alone("claim, lost", commit, [](fiber_word& w) { doNotOptimizeAway(w.claim(ticket + 1)); });
  all.alone("complete", claim, [](fiber_word& w) { doNotOptimizeAway(w.complete()); });
  all.alone("wake", commit, [](fiber_word& w) { doNotOptimizeAway(w.wake(ticket)); });
  all.alone("finish", run, [](fiber_word& w) { w.finish(lifecycle::done); });
}

void cycles(words_of all) {
  all.cycle("run, yield", [](fiber_word& w) {
    w.runnable_to_running();
    w.running_to_runnable();
  });
  all.cycle("run, park, claim, complete", [](fiber_word& w) {
    claim(w);
    doNotOptimizeAway(w.complete());
  });
  all.cycle("run, park, wake", [](fiber_word& w) {
    commit(w);
    doNotOptimizeAway(w.wake(ticket));
  });
  all.cycle("run, park, woken before the commit", [](fiber_word& w) {
    park(w);
    doNotOptimizeAway(w.wake(ticket));
    doNotOptimizeAway(w.commit_park());
  });
}

}  // namespace

void micro::words(Bench& bench) {
  each_alone(words_of(bench));
  cycles(words_of(bench));
}
