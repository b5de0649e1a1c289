// SPDX-License-Identifier: BSL-1.0
#include <explore/explorer.hpp>

#include <cxxabi.h>
#include <execinfo.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <explore/memory.hpp>

#include <ramie/platform/fatal.hpp>

#include "execution.hpp"

namespace explore {

namespace platform = ramie::platform;

execution now;

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr int max_steps = 20'000;
std::vector<void**> carried_slots;
std::vector<void*> carried_first;  // what a thread begins with in each

// The two words of the C++ runtime behind exceptions: each thread of the model has its own.
struct exception_words {
  void* caught;
  unsigned uncaught;
};
exception_words& exceptions() {
  return *reinterpret_cast<exception_words*>(abi::__cxa_get_globals());
}

// Control passes to `home`, which decides.
void go_home() {
  actor& self = now.self();
  for (std::size_t i = 0; i < carried_slots.size(); ++i) self.carried[i] = *carried_slots[i];
  const exception_words mine = exceptions();
  const auto landed = platform::jump(now.home, nullptr);
  now.home = landed.from;
  exceptions() = mine;
  for (std::size_t i = 0; i < carried_slots.size(); ++i) *carried_slots[i] = self.carried[i];
}

// In a replay: where everybody waits.
void remember_where() {
  if (now.explains) now.self().frames = ::backtrace(now.self().where, actor::max_frames);
}
void tell_where() {
  for (std::size_t i = 0; i < now.used; ++i) {
    actor& t = *now.threads[i];
    if (t.ended) continue;
    std::printf("thread %zu waits at\n", i);
    std::fflush(stdout);
    ::backtrace_symbols_fd(t.where, t.frames, 1);
  }
}

void thread_entry(platform::arrival landed) {
  now.home = landed.from;
  for (std::size_t i = 0; i < carried_slots.size(); ++i) *carried_slots[i] = carried_first[i];
  exceptions() = {};
  now.self().body();
  now.self().body = nullptr;  // what it has captured ends with the thread, not in the next execution
  now.self().ended = true;
  changed();
  now.running = false;
  go_home();
  std::abort();
}

bool ready(actor& t) {
  if (t.ended || t.waits_since == now.news) return false;
  if (!t.condition) return true;
  if (t.wakes_at <= now.time() || (t.asked_at != now.news && t.condition())) return true;
  t.asked_at = now.news;
  return false;
}

void resume(std::size_t index) {
  now.current = index;
  actor& t = now.self();
  if (t.condition) {
    now.learns = true;
    (void)t.condition();
    now.learns = false;
  }
  t.waits_since = no_news;
  t.wakes_at = never;
  t.condition = nullptr;
  now.running = true;
  const auto landed = platform::jump(t.at, nullptr);
  now.self().at = landed.from;
  now.running = false;
}

std::size_t add_thread(std::function<void()> body) {
  if (now.used == now.threads.size()) {
    now.threads.push_back(std::make_unique<actor>());
    now.threads.back()->stack = std::make_unique<char[]>(stack_bytes);
  }
  if (now.weak && now.used == view::threads) fail("the scenario has more threads than the memory model keeps");
  actor& t = *now.threads[now.used];
  t.body = std::move(body);
  t.ended = t.read_old_value = t.reads_newest = false;
  t.waits_since = no_news;
  t.wakes_at = never;
  t.condition = nullptr;
  t.carried = carried_first;
  t.sees = {};
  t.at = platform::make_context(t.stack.get() + stack_bytes, stack_bytes, thread_entry, {});
  return now.used++;
}

// The threads that can go on, the current one first. True: it can.
bool collect_ready(std::vector<std::size_t>& found) {
  found.clear();
  const bool stays = now.current < now.used && ready(*now.threads[now.current]);
  if (stays) found.push_back(now.current);
  for (std::size_t i = 0; i < now.used; ++i) {
    if (i != now.current && ready(*now.threads[i])) found.push_back(i);
  }
  return stays;
}

// Nobody can go on. Who pauses looks again without news, and the next time that somebody waits for has come.
bool pass_time() {
  bool any = false;
  std::int64_t next = never;
  for (std::size_t i = 0; i < now.used; ++i) {
    actor& t = *now.threads[i];
    if (t.ended) continue;
    any = any || t.waits_since != no_news;
    t.waits_since = no_news;
    next = std::min(next, t.wakes_at);
  }
  if (next != never) now.skipped += next - now.time();
  return any || next != never;
}

void execute(scenario& program) {
  now.used = 0;
  now.steps = 0;
  now.skipped = 0;
  now.news = 0;
  ++now.number;
  forget_memory();
  now.failure.clear();
  for (auto& body : program.threads()) (void)add_thread(std::move(body));
  now.current = now.used;
  static std::vector<std::size_t> found;
  for (;;) {
    bool stays = collect_ready(found);
    if (found.empty() && pass_time()) stays = collect_ready(found);
    if (found.empty()) break;
    resume(found.size() == 1 ? found[0] : now.choices->next_thread(found, stays));
    if (!now.failure.empty()) return;
    if (++now.steps > max_steps) {
      now.failure = "no end in sight: livelock";
      return;
    }
  }
  for (std::size_t i = 0; i < now.used; ++i) {
    if (!now.threads[i]->ended) now.failure = "everybody waits: a wake was lost";
  }
  if (!now.failure.empty() && now.explains) tell_where();
  if (now.failure.empty()) program.check();
}

}  // namespace

void step() noexcept {
  if (!now.running) return;
  go_home();
  now.self().heard = now.news;
}

void touched_after_its_end() noexcept {
  fail("an object is used after its end");
}

void changed() noexcept {
  ++now.news;
}

void until(std::function<bool()> holds) noexcept {
  until(std::move(holds), never);
}

void until(std::function<bool()> holds, std::int64_t microsecond) noexcept {
  remember_where();
  now.self().condition = std::move(holds);
  now.self().wakes_at = microsecond;
  now.self().asked_at = no_news;
  go_home();
  now.self().heard = now.news;
}

// A thread that has read an old value will see the newest sooner or later: now.
void pause() noexcept {
  if (!now.running) return;
  actor& self = now.self();
  if (self.read_old_value) {
    self.read_old_value = false;
    self.reads_newest = true;
    return;
  }
  self.reads_newest = false;
  remember_where();
  self.waits_since = self.heard;
  if (now.news == self.heard) go_home();
  self.heard = now.news;
}

std::size_t start_thread(std::function<void()> body) {
  const auto number = add_thread(std::move(body));
  inherit_views(number);
  changed();
  return number;
}

void join_thread(std::size_t number) noexcept {
  until([number] { return now.threads[number]->ended; });
  learn_from(number);
}

void carry(void** slot) {
  carried_first.push_back(*slot);
  carried_slots.push_back(slot);
}

void fail(const char* what) noexcept {
  if (now.failure.empty()) now.failure = what;
  if (now.running) {
    now.running = false;
    go_home();  // the execution ends here; this stack is never resumed
  }
  std::printf("FAILED outside a thread: %s\n", now.failure.c_str());
  std::exit(1);
}

void require(bool claim, const char* what) noexcept {
  if (claim) return;
  if (now.running) fail(what);
  if (now.failure.empty()) now.failure = what;
}

report run(const scenario_maker& make, const limits& within) {
  report result;
  now.weak = within.stale != 0;
  now.membarrier = within.membarrier;
  now.explains = false;
  now.met_fences = false;
  // Pools of the process fill, so that the next execution is like all after it.
  for (int i = 0; i < 2; ++i) {
    now.choices = decide({});
    if (now.choices->begin()) execute(*make());
  }
  now.choices = decide(within);
  now.explains = !within.replay.empty();
  while (now.choices->begin()) {
    now.running = false;
    const auto program = make();
    execute(*program);
    ++result.executions;
    result.met_fences = now.met_fences;
    if (!now.failure.empty()) {
      result.failure = now.failure;
      result.replay = now.choices->replay();
      return result;
    }
    if (result.executions >= within.executions) return result;
  }
  result.exhausted = true;
  return result;
}

}  // namespace explore

namespace ramie::platform {

void fatal(const char* format, ...) noexcept {
  static char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  explore::fail(text);
}

}  // namespace ramie::platform
