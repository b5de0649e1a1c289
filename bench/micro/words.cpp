// SPDX-License-Identifier: BSL-1.0
// The transitions of a fiber's word: each alone, from a word that is put back by a plain store (the first row, to be
// taken off the others), and in the cycles that fibers go through. Sole: the owner's reference is the only one.
#include "micro.hpp"

#include <cstring>
#include <string>

#include <task/state.hpp>

namespace {

using namespace ramie::detail;
using micro::doNotOptimizeAway;

constexpr std::uint16_t ticket = 7;

class words_of {
 public:
  words_of(micro::Bench& bench, bool shared) : bench_(bench), shared_(shared) {}

  // `path` leads from RUNNABLE to where `step` begins.
  template <class Path, class Step>
  void alone(const char* name, Path path, Step step) {
    fiber_word before, w;
    prepare(before);
    path(before);
    bench_.run(titled(name), [&] {
      std::memcpy(static_cast<void*>(&w), &before, sizeof w);
      step(w);
    });
  }
  // `round` leads from RUNNABLE to RUNNABLE.
  template <class Round>
  void cycle(const char* name, Round round) {
    fiber_word w;
    prepare(w);
    bench_.run(titled(name), [&] { round(w); });
  }

 private:
  void prepare(fiber_word& w) const {
    w.initialise_runnable(0);
    if (shared_) w.retain();
  }
  std::string titled(const char* name) const { return std::string(name) + (shared_ ? " (shared)" : " (sole)"); }

  micro::Bench& bench_;
  const bool shared_;
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
  all.alone("finish", run, [](fiber_word& w) { doNotOptimizeAway(w.finish(lifecycle::done).last_reference); });
  all.alone("retain", run, [](fiber_word& w) { w.retain(); });
  all.alone("release", run, [](fiber_word& w) { doNotOptimizeAway(w.release()); });
  all.alone("mirror_shield", run, [](fiber_word& w) { w.mirror_shield(1); });
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
  for (const bool shared : {false, true}) {
    each_alone({bench, shared});
    cycles({bench, shared});
  }
}
