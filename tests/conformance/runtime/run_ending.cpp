// SPDX-License-Identifier: BSL-1.0
// Who may end a runtime and its threads, and what the others are told.
#include <pthread.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include <ramie/ramie.hpp>
#include <support/scheduler_access.hpp>
#include <support/child.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace conformance_run_ending {

using test::dies_saying;
using test::with_workers;

// A child that hangs is ended by a signal that is none of those expected.
void not_for_ever() {
  ::alarm(test::scaled(20, 60));
}
bool says(const test::ending& end, const char* text) {
  return end.errors.find(text) != std::string::npos;
}

TEST_CASE("a runtime that is destroyed by one of its own fibers ends the program and says what to do",
          "[conformance][run][death]") {
  if (test::under_valgrind()) LEFT_OUT("valgrind reports the death of a child");
  const auto by_child = test::in_child([] {
    not_for_ever();
    auto rt = std::make_unique<ramie::runtime>(with_workers(2));
    rt->run([&] {
      ramie::nursery n;
      n.spawn({.name = "wrecker"}, [&] { rt.reset(); });
      n.join();
    });
  });
  INFO(by_child.errors);
  CHECK(by_child.signal == SIGABRT);
  CHECK(says(by_child, "a runtime is destroyed by fiber #"));
  CHECK(says(by_child, "'wrecker', spawned at "));
  CHECK(says(by_child, "Destroy it outside"));

  const auto by_call = test::in_child([] {
    not_for_ever();
    auto rt = std::make_unique<ramie::runtime>(with_workers(1));
    rt->run([&] { ramie::blocking([&] { rt.reset(); }); });
  });
  INFO(by_call.errors);
  CHECK(by_call.signal == SIGABRT);
  CHECK(says(by_call, "a runtime is destroyed in a call of blocking()"));

  const auto by_callback = test::in_child([] {
    not_for_ever();
    auto rt = std::make_unique<ramie::runtime>(with_workers(1));
    rt->run([&] {
      for (;;) {  // until the time comes on the thread that keeps it: it may have come before the fiber sleeps
        ramie::with_nursery([&](ramie::nursery& n) {
          std::stop_callback at_the_end(n.get_stop_token(), [&] {
            if (ramie::runtime_internal::current_fiber() == nullptr) rt.reset();
          });
          n.cancel_after(std::chrono::milliseconds(1));
          ramie::sleep_for(std::chrono::hours(1));
        });
      }
    });
  });
  INFO(by_callback.errors);
  CHECK(by_callback.signal == SIGABRT);
  CHECK(says(by_callback, "a runtime is destroyed in a callback of its own"));
}

TEST_CASE("std::exit in a fiber of a static runtime ends the program and says what to do",
          "[conformance][run][death]") {
  if (test::under_valgrind()) LEFT_OUT("valgrind reports the death of a child");
  const auto by_exit = test::in_child([] {
    not_for_ever();
    static ramie::runtime rt(with_workers(1));
    rt.run([] { std::exit(7); });
  });
  INFO(by_exit.errors);
  CHECK(by_exit.signal == SIGABRT);
  CHECK(says(by_exit, "std::exit() destroys static objects where it is called"));

  const auto as_advised = test::in_child([] {
    not_for_ever();
    static ramie::runtime rt(with_workers(1));
    rt.run([] { std::quick_exit(7); });
  });
  INFO(as_advised.errors);
  CHECK(as_advised.signal == 0);
  CHECK(as_advised.exit_code == 7);
}

TEST_CASE("a runtime may be made, used and destroyed on a fiber of another one", "[conformance][run]") {
  for (const unsigned workers : {1u, 2u}) {
    int got = 0;
    bool cancelled = false;
    ramie::run(with_workers(workers), [&] {
      auto idle = std::make_unique<ramie::runtime>(with_workers(1));
      idle.reset();
      auto used = std::make_unique<ramie::runtime>(with_workers(2));
      std::thread([&] { got = used->run([] { return 3; }); }).join();
      std::atomic<bool> waits{false};
      std::thread late([&] {
        try {
          used->run([&] {
            waits = true;
            (void)ramie::channel<int>(0).recv();
          });
        } catch (const ramie::cancelled&) {
          cancelled = true;
        }
      });
      test::until([&] { return waits.load(); });
      used.reset();
      late.join();
    });
    CHECK(got == 3);
    CHECK(cancelled);
  }
}

TEST_CASE("pthread_exit in a fiber ends the program and says what to do", "[conformance][run][death]") {
  if (test::under_valgrind()) LEFT_OUT("valgrind reports the death of a child");
  if (test::thread_sanitized) LEFT_OUT("ThreadSanitizer knows no pthread_exit in a fiber");
  void (*const ways[])() = {
      [] { ramie::run(with_workers(1), [] { ::pthread_exit(nullptr); }); },
      [] {
        ramie::run(with_workers(1), [] {
          ramie::nursery n;
          n.spawn({.name = "leaver"}, [] { ::pthread_exit(nullptr); });  // called in place
          n.join();
        });
      },
      [] {
        ramie::run(with_workers(2), [] {
          ramie::nursery n;
          n.spawn({.name = "leaver"}, [] {
            ramie::yield();
            try {
              ::pthread_exit(nullptr);
            } catch (const std::exception&) {  // which it is not
            }
          });
          n.join();
        });
      },
      [] {
        ramie::run(with_workers(1), [] {
          ramie::nursery n;
          n.spawn({.name = "leaver"}, [] {
            ramie::channel<int> never(0);
            ramie::parallel_invoke([&] { (void)never.recv(); },  // which a worker takes meanwhile: nobody waits for it
                                   [] {
                                     ramie::yield();
                                     ::pthread_exit(nullptr);
                                   });
          });
          n.join();
        });
      },
  };
  bool named = false;
  for (const auto way : ways) {
    static void (*chosen)() = nullptr;
    chosen = way;
    const auto end = test::in_child([] {
      not_for_ever();
      chosen();
    });
    INFO(end.errors);
    CHECK(end.signal == SIGABRT);
    CHECK(says(end, "pthread_exit() or pthread_cancel() in fiber #"));
    CHECK(says(end, "A fiber ends by returning from its function or throwing"));
    CHECK(says(end, "'leaver'") == named);
    named = true;
  }
}

TEST_CASE("pthread_exit in a blocking call ends the program and says what to do", "[conformance][run][death]") {
  if (test::under_valgrind()) LEFT_OUT("valgrind reports the death of a child");
  void (*const ways[])() = {
      [] { ramie::blocking([] { ::pthread_exit(nullptr); }); },
      [] { ramie::blocking(ramie::detach_on_cancel, [] { ::pthread_exit(nullptr); }); },
  };
  for (const auto way : ways) {
    static void (*chosen)() = nullptr;
    chosen = way;
    const auto end = test::in_child([] {
      not_for_ever();
      ramie::run(with_workers(1), [] { chosen(); });
    });
    INFO(end.errors);
    CHECK(end.signal == SIGABRT);
    CHECK(says(end, "pthread_exit() or pthread_cancel() in a call of blocking()"));
  }
}

// L9, Q21
TEST_CASE("a runtime that ends with a frame missing or a fiber queued ends the program", "[conformance][death]") {
  dies_saying(
      [] {
        ramie::runtime rt(with_workers(1));
        (void)ramie::runtime_internal::scheduler_of(rt).frames.take_one();
      },
      "1 fiber frames did not come back before their runtime ended");
  dies_saying(
      [] {
        static ramie::runtime_internal::fiber f;
        ramie::runtime rt(with_workers(1));
        ramie::runtime_internal::scheduler_of(rt).queues.reserve(1);
        ramie::runtime_internal::scheduler_of(rt).queues.inject(ramie::runtime_internal::as_entry(f));
      },
      "fibers are still queued while their runtime ends");
}

}  // namespace conformance_run_ending
