// SPDX-License-Identifier: BSL-1.0
// Graceful shutdown: a request reaches everybody once, work under way is waited for and named.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <ramie/testing.hpp>
#include <support/census.hpp>
#include <support/fibers_and_threads.hpp>
#include <support/seeds.hpp>
#include <support/test.hpp>

namespace conformance_shutdown {

using namespace std::chrono_literals;
using ramie::deadline;
using ramie::nursery;
using ramie::shutdown_source;
using ramie::shutdown_token;
using ramie::work_guard;
using test::as_fiber;
using test::as_thread_and_fiber;
using test::fate;
using test::findings;
using test::let_wait;

TEST_CASE("a shutdown is requested once, and everybody sees it", "[conformance][shutdown]") {
  as_thread_and_fiber([](findings& found) {
    shutdown_source source;
    const shutdown_token token = source.get_token();
    const auto stop = token.get_stop_token();
    EXPECT(found, !token.requested(), !source.requested(), !stop.stop_requested(), stop.stop_possible());
    found.expect(!token.wait(deadline(ramie::now())));
    shutdown_source same = source;
    EXPECT(found, same.request(), !source.request());
    EXPECT(found, token.requested(), source.requested(), stop.stop_requested());
    EXPECT(found, token.wait(), token.wait(deadline(ramie::now())));
  });
}

TEST_CASE("who waits for a shutdown goes on when it comes, is late, or is cancelled",
          "[conformance][shutdown][cancel]") {
  as_fiber([](findings& found, auto& clock) {
    shutdown_source source;
    const auto token = source.get_token();
    fate waits = fate::running, late = fate::running, cut = fate::running;
    nursery n, goes;
    let_wait(n, waits, [&] { return token.wait(); });
    let_wait(n, late, [&] { return token.wait(deadline(1s)); });
    let_wait(goes, cut, [&] { return token.wait(); });
    goes.cancel();
    goes.join();
    clock.advance(2s);
    ramie::testing::wait_all_blocked();
    EXPECT(found, cut == fate::cut_short, late == fate::failed, waits == fate::running);
    source.request();
    n.join();
    EXPECT(found, waits == fate::done);
  });
}

TEST_CASE("a shutdown is a case of a select", "[conformance][shutdown][select][cancel]") {
  const auto whatever = [](auto&&...) {};
  as_thread_and_fiber([&](findings& found) {
    shutdown_source source;
    const auto token = source.get_token();
    EXPECT(found, ramie::select(ramie::on_ready(token, whatever), ramie::otherwise(whatever)) == 1);
    source.request();
    EXPECT(found, ramie::select(ramie::on_ready(token, whatever), ramie::otherwise(whatever)) == 0);
  });
  as_fiber([&](findings& found, auto&) {
    shutdown_source source;
    const auto token = source.get_token();
    ramie::channel<int> jobs(0);
    fate works = fate::running, waits = fate::running, cut = fate::running;
    nursery n, goes;
    const auto one = [&] { return ramie::select(ramie::on_ready(token, whatever), ramie::on_recv(jobs, whatever)); };
    let_wait(n, works, [&] { return one() == 1; });
    let_wait(n, waits, [&] { return one() == 0; });
    let_wait(goes, cut, one);
    goes.cancel();
    goes.join();
    jobs.send(1);
    ramie::yield();
    EXPECT(found, cut == fate::cut_short, works == fate::done, waits == fate::running);
    source.request();
    n.join();
    EXPECT(found, waits == fate::done);
  });
}

TEST_CASE("what is registered for the request is called by it, or at once, or not at all", "[conformance][shutdown]") {
  as_thread_and_fiber([](findings& found) {
    shutdown_source source;
    const auto token = source.get_token();
    std::string order;
    {
      const auto taken_back = token.on_request([&] { order += 'x'; });
    }
    const auto first = token.on_request([&] { order += '1'; });
    std::optional<int> several = 2;
    const auto second = token.on_request([&, held = std::make_unique<int>(2)] { order += '2', several.reset(); });
    found.expect(order.empty());
    source.request();
    EXPECT(found, order == "21", !several);
    const auto at_once = token.on_request([&] { order += '3'; });
    EXPECT(found, order == "213", !source.request(), order == "213");
  });
}

TEST_CASE("a callback may take back itself and others, and register more", "[conformance][shutdown]") {
  as_thread_and_fiber([](findings& found) {
    shutdown_source source;
    const auto token = source.get_token();
    std::string order;
    struct node {
      node(const shutdown_token& t, std::function<void()> f) : callback(t.on_request(std::move(f))) {}
      ramie::shutdown_callback<std::function<void()>> callback;
    };
    std::unique_ptr<node> itself, other, late;
    other = std::make_unique<node>(token, [&] { order += 'o'; });
    const auto registers = token.on_request([&] {
      late = std::make_unique<node>(token, [&] { order += 'l'; });
      order += 'r';
    });
    itself = std::make_unique<node>(token, [&] {
      order += 'i';
      other.reset();
      auto gone = std::move(itself);  // destroyed at the end of this very call
    });
    source.request();
    EXPECT(found, order == "ilr", itself == nullptr, other == nullptr);
  });
}

TEST_CASE("an accept loop ends when its listener is closed by the token", "[conformance][shutdown]") {
  test::for_all_workers([](unsigned workers) {
    std::atomic<int> served{0};
    int served_in_time = 0;
    ramie::pending_report report{1, {}};
    ramie::run(test::with_workers(workers), [&] {
      shutdown_source source;
      ramie::channel<int> listener(0);  // stands for one: what waits there goes on when it is closed
      nursery n;
      n.spawn([&, token = source.get_token(), accepting = source.get_token().guard("accept loop")] {
        const auto on_shutdown = token.on_request([&] { listener.close(); });
        while (auto connection = listener.recv()) {
          n.spawn([&, work = token.guard("connection")] {
            ramie::yield();
            ++served;
          });
        }
      });
      for (int i = 0; i < 20; ++i) listener.send(i);
      source.request();
      report = source.wait_pending();
      served_in_time = served;
      n.join();
    });
    CHECK(served_in_time == 20);
    CHECK(report.all_done());
  });
}

TEST_CASE("work that is not done in time is named, with its place", "[conformance][shutdown]") {
  as_fiber([](findings& found, auto& clock) {
    shutdown_source source;
    const auto token = source.get_token();
    found.expect(source.wait_pending().all_done());
    auto first = token.guard("upload");
    const unsigned line = __LINE__ + 1;
    auto second = std::make_optional(token.guard());
    EXPECT(found, source.pending() == 2);
    source.request();
    ramie::pending_report report;
    nursery n;
    n.spawn([&] { report = source.wait_pending(deadline(1s)); });
    ramie::yield();
    clock.advance(2s);
    n.join();
    EXPECT(found, report.pending == 2, !report.all_done(), report.names.size() == 2);
    EXPECT(found, report.names[0].find("upload (") == 0, report.names[0].find("shutdown.cpp:") != std::string::npos);
    EXPECT(found, report.names[1].find("shutdown.cpp:" + std::to_string(line)) != std::string::npos);

    auto moved = std::move(first);
    EXPECT(found, !first.valid(), moved.valid(), source.pending() == 2);  // NOLINT: moved from
    moved = std::move(*second);                                           // ends what it was
    EXPECT(found, source.report().names.size() == 1, source.report().names[0] == report.names[1]);
    moved.done();
    moved.done();
    EXPECT(found, !moved.valid(), source.pending() == 0, source.wait_pending(deadline(ramie::now())).all_done());
  });
}

TEST_CASE("waiting for pending work ends with the last of it, or by cancellation", "[conformance][shutdown][cancel]") {
  as_fiber([](findings& found, auto&) {
    shutdown_source source;
    std::optional<work_guard> work = source.get_token().guard(), more = source.get_token().guard();
    fate waits = fate::running, cut = fate::running;
    nursery n, goes;
    let_wait(n, waits, [&] { return source.wait_pending().all_done(); });
    let_wait(goes, cut, [&] { return source.wait_pending().all_done(); });
    goes.cancel();
    goes.join();
    work.reset();
    ramie::yield();
    EXPECT(found, waits == fate::running, cut == fate::cut_short);
    more.reset();
    n.join();
    EXPECT(found, waits == fate::done);
  });
}

TEST_CASE("work that need not begin is refused after the request, none slips past it", "[conformance][shutdown]") {
  const int rounds = test::scaled(300, 30);
  test::for_all_workers([rounds](unsigned workers) {
    std::atomic<int> wrong{0}, refused{0};
    ramie::run(test::with_workers(workers), [&] {
      for (int i = 0; i < rounds; ++i) {
        shutdown_source source;
        std::atomic<bool> over{false};
        nursery n;
        for (int k = 0; k < 3; ++k) {
          n.spawn([&, token = source.get_token()] {
            for (;;) {
              const auto work = token.try_guard();
              if (!work) break;
              if (over) ++wrong;  // wait_pending has returned, although this was under way
              ramie::yield();
            }
            ++refused;
          });
        }
        if (i % 2 == 0) ramie::yield();
        source.request();
        (void)source.wait_pending();
        over = true;
        if (source.get_token().try_guard()) ++wrong;
        n.join();
      }
    });
    CHECK(wrong == 0);
    CHECK(refused == 3 * rounds);
  });
}

TEST_CASE("who takes a callback back while it runs waits for its end", "[conformance][shutdown]") {
  // Between fibers of one thread: who calls it is told by fiber.
  as_fiber([](findings& found, auto&) {
    shutdown_source source;
    bool began = false, ended = false;
    nursery n;
    n.spawn([&, token = source.get_token()] {
      {
        const auto callback = token.on_request([&] {
          began = true;
          for (int i = 0; i < 3; ++i) ramie::yield();
          ended = true;
        });
        while (!began) ramie::yield();
      }
      found.expect(ended);
    });
    ramie::yield();
    source.request();
    n.join();
  });
  // Between threads.
  shutdown_source source;
  std::atomic<bool> began{false}, goes{false}, ended{false};
  std::thread requests;
  {
    const auto callback = source.get_token().on_request([&] {
      began = true;
      test::until([&] { return goes.load(); });
      for (int i = 0; i < 100; ++i) std::this_thread::yield();
      ended = true;
    });
    requests = std::thread([&] { source.request(); });
    test::until([&] { return began.load(); });
    goes = true;
  }
  CHECK(ended);
  requests.join();
}

TEST_CASE("a callback that is gone is not running any more", "[conformance][shutdown]") {
  const int rounds = test::scaled(500, 40);
  for (const bool chaos : {false, true}) {
    test::for_all_workers([rounds, chaos](unsigned workers) {
      std::atomic<int> wrong{0}, called{0};
      ramie::run(test::setting{workers, workers, chaos}.options(), [&] {
        for (int i = 0; i < rounds; ++i) {
          shutdown_source source;
          nursery n;
          for (int k = 0; k < 4; ++k) {
            n.spawn([&, token = source.get_token()] {
              std::atomic<bool> alive{true};
              ramie::channel<int> doors(1);
              {
                const auto callback = token.on_request([&] {
                  if (!alive) ++wrong;
                  doors.close();  // wakes: in chaos the caller yields here
                  if (!alive) ++wrong;
                  ++called;
                });
                ramie::yield();
              }
              alive = false;
            });
          }
          if (i % 2 == 0) ramie::yield();
          std::thread outside([&, requests = i % 4 == 0] {
            if (requests) source.request();
          });
          source.request();
          n.join();
          outside.join();
        }
      });
      CHECK(wrong == 0);
      CHECK(called <= 4 * rounds);
    });
  }
}

TEST_CASE("guards of fibers and threads are counted exactly, and nothing is left of them", "[conformance][shutdown]") {
  const int times = test::scaled(1'000, 100);
  test::for_all_workers([times](unsigned workers) {
    test::census closures;
    shutdown_source source;
    std::atomic<int> under_way{0};
    test::together(workers, 8, 2, [&, token = source.get_token()](int) {
      for (int i = 0; i < times; ++i) {
        const auto callback = token.on_request([person = test::citizen(closures)] {});
        const auto work = token.guard("some");
        ++under_way;
        if (i % 16 == 0) ramie::yield();
        if (i % 64 == 0) (void)source.report();
        --under_way;
      }
    });
    CHECK(under_way == 0);
    CHECK(source.pending() == 0);
    CHECK(closures.alive() == 0);
    CHECK(source.request());
  });
}

TEST_CASE("in every schedule a shutdown drains and ends", "[conformance][shutdown]") {
  ramie::testing::explore_options o;
  o.schedules = static_cast<unsigned>(test::scaled(300, 60));
  CHECK_NOTHROW(ramie::testing::explore(o, [] {
    shutdown_source source;
    nursery n;
    ramie::channel<int> listener(0);
    bool accepted = false, worked = false;
    n.spawn([&, token = source.get_token(), accepting = source.get_token().guard("accept loop")] {
      const auto closing = token.on_request([&] { listener.close(); });
      while (listener.recv()) {
        accepted = true;
        n.spawn([&, work = token.guard()] {
          ramie::yield();
          worked = true;
        });
      }
    });
    n.spawn([&, token = source.get_token()] { token.wait(); });
    n.spawn([&] { listener.send(1); });
    ramie::yield();
    source.request();
    const bool all_done = source.wait_pending().all_done();
    ramie::testing::check(all_done && worked == accepted, "what was accepted has been done");
    n.join();
  }));
}

TEST_CASE("a std::jthread and a nursery stop with a shutdown", "[conformance][shutdown]") {
  std::atomic<bool> asked{false};
  ramie::run(test::with_workers(2), [&] {
    shutdown_source source;
    std::stop_callback told(source.get_token().get_stop_token(), [&] { asked = true; });
    nursery n;
    n.cancel_on(source.get_token().get_stop_token());
    n.spawn([] { ramie::sleep_for(1h); });
    source.request();
    try {
      n.join();
    } catch (const ramie::cancelled&) {
    }
  });
  CHECK(asked);
}

}  // namespace conformance_shutdown
