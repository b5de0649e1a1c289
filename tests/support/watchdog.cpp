// SPDX-License-Identifier: BSL-1.0
// The watchdog is a timer that sends SIGQUIT to the main thread, not a thread: tests fork, and ThreadSanitizer gives up
// a process that forks while it has several. The handler tells what is known, each thread telling its own part, and
// ends the process; it may fail at that, since whatever hangs may hold a lock, so an alarm ends it at the latest.
//
// RAMIE_TEST_JOURNAL names a file to which the beginning and the end of every case is appended, for tools/lib/cases.py.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#include <catch2/catch.hpp>
#endif

#include "watchdog.hpp"

#include <dirent.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include <support/test.hpp>
#include <support/hang_report.hpp>

namespace test {

namespace {

// What the handler may need, kept where it need not allocate.
struct watched {
  char name[512] = "no test case";
  Catch::SourceLineInfo place{"", 0};
  Catch::SourceLineInfo last_assertion{"", 0};
  long patience = 0;
  std::uint64_t steps = 0;
};
watched now;
int journal = -1;
timer_t timer;
bool has_timer = false;
std::atomic<bool> telling{false};
std::atomic<int> answered{0};

template <class... T>
void say(const char* format, const T&... values) noexcept {
  char text[1200];
  const int length = std::snprintf(text, sizeof text, format, values...);
  const auto size = static_cast<std::size_t>(length) < sizeof text ? static_cast<std::size_t>(length) : sizeof text - 1;
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, size);
}

long number_in(const char* variable) noexcept {
  const char* const text = std::getenv(variable);
  return text != nullptr ? std::strtol(text, nullptr, 10) : 0;
}

// RAMIE_TEST_PATIENCE, in seconds, is for the test of the watchdog itself.
long patience() noexcept {
  if (const long wanted = number_in("RAMIE_TEST_PATIENCE"); wanted > 0) return wanted;
  long seconds = thread_sanitized ? 240 : sanitized ? 180 : 60;
  if (under_valgrind()) seconds *= 10;
  if (large()) seconds *= 10;
  return seconds + 60 * number_in("RAMIE_STRESS_MINUTES");
}

void set_timer(long seconds) noexcept {
  if (!has_timer) return;
  itimerspec in{};
  in.it_value.tv_sec = seconds;
  (void)::timer_settime(timer, 0, &in, nullptr);
}

void note(const char* what, const char* name) noexcept {
  if (journal < 0) return;
  char line[600];
  const int length = std::snprintf(line, sizeof line, "%s %ld %s\n", what, now.patience, name);
  [[maybe_unused]] const auto written = ::write(journal, line, static_cast<std::size_t>(length));
}

// The calling thread's own part.
void tell_thread() noexcept {
  void* frames[40];
  const int count = ::backtrace(frames, 40);
  char doing[600];
  describe_this_thread(doing, sizeof doing);
  say("  thread %ld%s%s\n", static_cast<long>(::syscall(SYS_gettid)), *doing != 0 ? ": " : "", doing);
  ::backtrace_symbols_fd(frames + 2, count > 2 ? count - 2 : 0, STDERR_FILENO);
}

// The other threads, one after the other: each tells its own part in its own handler.
void tell_other_threads() noexcept {
  const long own = ::syscall(SYS_gettid);
  DIR* const all = ::opendir("/proc/self/task");
  if (all == nullptr) return;
  while (const dirent* const entry = ::readdir(all)) {
    const long id = std::strtol(entry->d_name, nullptr, 10);
    if (id == 0 || id == own) continue;
    const int before = answered.load();
    if (::syscall(SYS_tgkill, ::getpid(), id, SIGQUIT) != 0) continue;
    for (int looks = 0; answered.load() == before; ++looks) {
      if (looks == 300) {
        say("  thread %ld does not answer\n", id);
        break;
      }
      const timespec moment{0, 1'000'000};
      (void)::nanosleep(&moment, nullptr);
    }
  }
  (void)::closedir(all);
}

void tell_all(bool too_late) noexcept {
  ::signal(SIGALRM, SIG_DFL);
  (void)::alarm(20);
  if (too_late) {
    say("\nHUNG: \"%s\" (%s:%zu) has not ended after %ld s", now.name, now.place.file, now.place.line, now.patience);
  } else {
    say("\nSIGQUIT in \"%s\" (%s:%zu)", now.name, now.place.file, now.place.line);
  }
  if (now.last_assertion.line != 0) {
    say("; its last assertion was at %s:%zu", now.last_assertion.file, now.last_assertion.line);
  }
  say("%s", ". Who waits where:\n");
  tell_thread();
  tell_other_threads();
  describe_fibers([](const char* line) { say("%s", line); });
  watchdog::describe_all();
  ::_exit(exit_of_hung);
}

void on_quit(int, siginfo_t* info, void*) {
  if (telling.load()) {  // another thread asks
    tell_thread();
    answered.fetch_add(1);
    return;
  }
  const bool too_late = info->si_code == SI_TIMER;
  if (const std::uint64_t steps = watchdog::all_steps(); too_late && steps != now.steps) {
    now.steps = steps;
    note("goes-on", now.name);
    set_timer(now.patience);
    return;
  }
  if (!telling.exchange(true)) tell_all(too_late);
}

// ThreadSanitizer holds a signal back until the thread calls something that it knows, which one that hangs may never
// do. So its handler is replaced by ours underneath it; the C library's way back from a handler stays.
void install() noexcept {
  struct sigaction ours = {};
  ours.sa_sigaction = on_quit;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&ours.sa_mask);
  (void)::sigaction(SIGQUIT, &ours, nullptr);
  if constexpr (thread_sanitized) {
    struct {
      void (*handler)(int, siginfo_t*, void*);
      unsigned long flags;
      void (*restorer)();
      std::uint64_t mask;
    } raw = {};
    (void)::syscall(SYS_rt_sigaction, SIGQUIT, nullptr, &raw, sizeof raw.mask);
    raw.handler = on_quit;
    (void)::syscall(SYS_rt_sigaction, SIGQUIT, &raw, nullptr, sizeof raw.mask);
  }
}

void make_timer() noexcept {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = SIGQUIT;
  event._sigev_un._tid = static_cast<pid_t>(::syscall(SYS_gettid));
  has_timer = ::timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
}

#if __has_include(<catch2/catch_all.hpp>)
using listener_base = Catch::EventListenerBase;
#else
using listener_base = Catch::TestEventListenerBase;
#endif

class listener : public listener_base {
 public:
  using listener_base::listener_base;

  void testRunStarting(const Catch::TestRunInfo& run) override {
    listener_base::testRunStarting(run);
    if (const char* const path = std::getenv("RAMIE_TEST_JOURNAL")) {
      journal = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
      (void)::unsetenv("RAMIE_TEST_JOURNAL");  // a case may run this program, too
    }
    void* frame = nullptr;
    (void)::backtrace(&frame, 1);  // loads what it needs now, not in the handler
    install();
    make_timer();
  }
  void testCaseStarting(const Catch::TestCaseInfo& which) override {
    listener_base::testCaseStarting(which);
    now.name[std::string_view(which.name).copy(now.name, sizeof now.name - 1)] = 0;
    now.place = which.lineInfo;
    now.last_assertion = {"", 0};
    now.patience = patience();
    now.steps = 0;
    note("begins", now.name);
    set_timer(now.patience);
  }
  void assertionStarting(const Catch::AssertionInfo& which) override { now.last_assertion = which.lineInfo; }
#if __has_include(<catch2/catch_all.hpp>)
  void assertionEnded(const Catch::AssertionStats&) override {}
#else
  bool assertionEnded(const Catch::AssertionStats&) override { return true; }
#endif
  void testCaseEnded(const Catch::TestCaseStats& how) override {
    set_timer(0);
    note(how.totals.assertions.allOk() ? "passed" : "failed", now.name);
    listener_base::testCaseEnded(how);
  }
};

}  // namespace

void watch_child() noexcept {
  journal = -1;
  telling = false;
  make_timer();
  set_timer(now.patience / 2);
}

CATCH_REGISTER_LISTENER(listener)

}  // namespace test
