// SPDX-License-Identifier: BSL-1.0
// Times as cases of a select: ticks of an interval, deadlines.
#include <chrono>
#include <optional>

#include <ramie/ramie.hpp>
#include <support/findings.hpp>
#include <support/on_many.hpp>
#include <support/test.hpp>

namespace conformance_select_time {

using namespace std::chrono_literals;
using ramie::channel;
using ramie::interval;
using ramie::now;
using ramie::on_recv;
using ramie::on_tick;
using ramie::on_timeout;
using ramie::select;
using ramie::selector;
using std::chrono::steady_clock;
using test::findings;
using test::in_virtual_time;

const auto whatever = [](auto&&...) {};

TEST_CASE("a select takes the tick of an interval only if that case happens", "[conformance][select][time][interval]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    interval every(10ms);
    channel<int> c(1);
    c.send(1);
    steady_clock::time_point due;
    const auto next = [&] {
      return select(on_recv(c, whatever), on_tick(every, [&](steady_clock::time_point at) { due = at; }));
    };
    EXPECT(found, next() == 0, every.next() == began + 10ms);
    EXPECT(found, next() == 1, now() == began + 10ms, due == now(), every.next() == began + 20ms);
    ramie::sleep_for(25ms);
    EXPECT(found, next() == 1, due == began + 20ms, next() == 1, due == began + 30ms, now() == began + 35ms);
    EXPECT(found, next() == 1, due == began + 40ms, now() == due);

    const auto later = now();
    interval skips(10ms, ramie::missed_ticks::skip);
    ramie::sleep_for(25ms);
    EXPECT(found, select(on_recv(c, whatever), on_tick(skips, [] {})) == 1, now() == later + 25ms);
    EXPECT(found, skips.next() == later + 30ms);

    int ticks = 0;
    selector any;
    any.on_recv(c, whatever).on_tick(skips, [&] { ++ticks; });
    EXPECT(found, any.wait() == 1, any.wait() == 1, ticks == 2, now() == later + 40ms);
    c.send(2);
    EXPECT(found, any.wait() == 0, skips.next() == later + 50ms);
  });
}

TEST_CASE("a timeout of a select may be a deadline", "[conformance][select][time]") {
  in_virtual_time([](findings& found) {
    const auto began = now();
    const channel<int> never(0);
    const ramie::deadline until = 5ms;
    EXPECT(found, select(on_recv(never, whatever), on_timeout(until, whatever)) == 1, now() == began + 5ms);
    EXPECT(found, select(on_recv(never, whatever), on_timeout(began + 7ms, whatever)) == 1, now() == began + 7ms);
    selector any;
    any.on_recv(never, whatever).on_timeout(ramie::deadline(began + 9ms), whatever);
    EXPECT(found, any.wait() == 1, now() == began + 9ms, any.wait() == 1, now() == began + 9ms);
  });
}

}  // namespace conformance_select_time
