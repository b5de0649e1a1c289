// SPDX-License-Identifier: BSL-1.0
// The core of channels, through the public door, by a fiber that is alone with them: nobody waits, nobody contends.
#include "micro.hpp"

#include <optional>
#include <string>

#include <ramie/ramie.hpp>

#include "one_worker.hpp"

namespace {

using micro::doNotOptimizeAway;
using ramie::channel;

void buffered(micro::Bench& bench) {
  channel<long> words(128);
  bench.run("word: try_send, try_recv", [&] {
    doNotOptimizeAway(words.try_send(1));
    doNotOptimizeAway(words.try_recv());
  });
  bench.run("word: send, recv", [&] {
    words.send(1);
    doNotOptimizeAway(words.recv());
  });
  channel<std::string> texts(128);
  std::string text = "short";
  bench.run("std::string: try_send, try_recv", [&] {
    doNotOptimizeAway(texts.try_send(text));
    doNotOptimizeAway(texts.try_recv());
  });
}

void refused(micro::Bench& bench) {
  channel<long> empty(1), full(1);
  (void)full.try_send(1);
  bench.run("try_recv, empty", [&] { doNotOptimizeAway(empty.try_recv()); });
  bench.run("try_send, full", [&] { doNotOptimizeAway(full.try_send(1)); });
}

void selects(micro::Bench& bench) {
  channel<long> quiet(1), ready(1);
  bench.run("send, select of two", [&] {
    ready.send(1);
    ramie::select(ramie::on_recv(quiet, [](std::optional<long>) {}),
                  ramie::on_recv(ready, [](std::optional<long> v) { doNotOptimizeAway(v); }));
  });
}

}  // namespace

void micro::channels(Bench& bench) {
  ramie::run(one_worker(), [&] {
    bench.run("make, drop", [] { channel<long> c(16); });
    buffered(bench);
    refused(bench);
    selects(bench);
  });
}
