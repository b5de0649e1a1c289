// SPDX-License-Identifier: BSL-1.0
// watch: the latest value.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_channel_watch {

using namespace std::chrono_literals;
using ramie::channel_status;
using ramie::nursery;
using ramie::watch;
using namespace test;

TEST_CASE("a watch shows the latest value, and that it changed", "[conformance][flavours][watch]") {
  as_thread_and_fiber([](findings& found) {
    const watch<std::string> level("one");
    auto viewer = level.subscribe();
    EXPECT(found, *viewer.peek() == "one", viewer.generation() == 1, !viewer.has_changed());
    EXPECT(found, level.send("two"), viewer.has_changed(), viewer.generation() == 1);
    EXPECT(found, *viewer.peek() == "two", viewer.has_changed());  // a look does not count
    EXPECT(found, viewer.changed(), viewer.generation() == 2, !viewer.has_changed());
    const auto kept = viewer.get();
    auto copy = viewer;
    level.send("three");
    level.send("four");
    EXPECT(found, *kept == "two", *level.get() == "four");
    EXPECT(found, viewer.changed(), *viewer.get() == "four", viewer.generation() == 4);  // "three" was skipped
    EXPECT(found, viewer.changed_for(0s) == channel_status::timed_out);
    EXPECT(found, copy.has_changed(), copy.generation() == 2, *copy.get() == "four", !copy.has_changed());
    EXPECT(found, level.subscribe().generation() == 4);
    EXPECT(found, level.receivers() == 2);
    level.send("last");
    EXPECT(found, level.close(), !level.close());
    EXPECT(found, !level.send("refused"), level.is_closed());
    EXPECT(found, viewer.changed(), *viewer.get() == "last");  // first what was not seen, then the end
    EXPECT(found, !viewer.changed(), !viewer.has_changed(), *viewer.peek() == "last");
    EXPECT(found, viewer.changed_for(1h) == channel_status::closed);
  });
}

TEST_CASE("watchers skip, never go back, and see the last value before the end", "[conformance][flavours][watch]") {
  const int values = test::scaled(5'000, 500);
  for (const unsigned workers : {1u, 2u, 4u}) {
    findings found;
    watch<int> level(0);
    std::atomic<int> started{0};
    const auto look_on = [&](ramie::watch_receiver<int> viewer) {
      started.fetch_add(1);
      int last = 0;
      std::uint64_t generation = viewer.generation();
      while (viewer.changed()) {
        EXPECT(found, viewer.generation() > generation);
        generation = viewer.generation();
        const int now = *viewer.peek();
        EXPECT(found, now >= last, now + 1 >= static_cast<int>(generation));  // it may be newer, never older
        last = now;
      }
      EXPECT(found, last == values, generation == static_cast<std::uint64_t>(values) + 1);
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) threads.emplace_back(look_on, level.subscribe());
    ramie::run(with_workers(workers), [&] {
      nursery n;
      for (int i = 0; i < 8; ++i) n.spawn(look_on, level.subscribe());
      while (started.load() != 10) ramie::yield();
      for (int i = 1; i <= values; ++i) {
        level.send(i);
        if (i % 32 == 0) ramie::yield();
      }
      level = {};  // the last sender
      n.join();
    });
    for (auto& t : threads) t.join();
    CHECK(found.wrong() == "");
  }
}

}  // namespace conformance_channel_watch
