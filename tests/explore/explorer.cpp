// SPDX-License-Identifier: BSL-1.0
#include <explore/explorer.hpp>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>

#include <ramie/platform/context.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/fence.hpp>

namespace explore {

namespace platform = ramie::platform;

namespace {

constexpr std::size_t stack_bytes = 64 * 1024;
constexpr int max_steps = 5'000;
constexpr std::uint64_t none = ~std::uint64_t{0};

struct thread {
  std::function<void()> body;
  platform::context at = nullptr;
  std::unique_ptr<char[]> stack = std::make_unique<char[]>(stack_bytes);
  bool ended = false;
  std::uint64_t heard = 0;  // news when it last looked at anything
  std::uint64_t waits_since = none;
  std::function<bool()> condition;
};

struct choice {
  unsigned taken;
  unsigned options;
};

struct execution {
  std::vector<thread> threads;
  std::uint64_t news = 0;
  std::size_t used = 0;  // threads of this scenario
  std::size_t current = 0;
  bool running = false;  // inside a thread: steps count
  unsigned preemptions = 0;
  unsigned bound = 0;
  int steps = 0;
  std::string failure;
  std::vector<choice> trail;
  std::size_t depth = 0;
  platform::context home = nullptr;
};

execution now;

unsigned choose(unsigned options) {
  if (now.depth == now.trail.size()) now.trail.push_back({0, options});
  return now.trail[now.depth++].taken;
}

// Control passes to `home`, which decides; or, where nothing is to be decided, stays.
void go_home() {
  const auto landed = platform::jump(now.home, nullptr);
  now.home = landed.from;
}

void thread_entry(platform::arrival landed) {
  now.home = landed.from;
  now.threads[now.current].body();
  now.threads[now.current].ended = true;
  now.running = false;
  go_home();
  std::abort();
}

bool ready(const thread& t) {
  return !t.ended && t.waits_since != now.news && (!t.condition || t.condition());
}

std::vector<std::size_t> others_ready() {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < now.used; ++i) {
    if (i != now.current && ready(now.threads[i])) found.push_back(i);
  }
  return found;
}

void resume(std::size_t index) {
  now.current = index;
  now.running = true;
  now.threads[index].waits_since = none;
  now.threads[index].condition = nullptr;
  const auto landed = platform::jump(now.threads[index].at, nullptr);
  now.threads[now.current].at = landed.from;
  now.running = false;
}

// One execution, along the trail and then by first choices.
void execute(scenario& program) {
  auto bodies = program.threads();
  now.used = bodies.size();
  while (now.threads.size() < now.used) now.threads.emplace_back();
  for (std::size_t i = 0; i < now.used; ++i) {
    thread& t = now.threads[i];
    t.body = std::move(bodies[i]);
    t.ended = false;
    t.waits_since = none;
    t.condition = nullptr;
    t.at = platform::make_context(t.stack.get() + stack_bytes, stack_bytes, thread_entry);
  }
  now.preemptions = 0;
  now.steps = 0;
  now.news = 0;
  now.depth = 0;
  now.failure.clear();
  now.current = now.used;  // nobody
  for (;;) {
    const bool can_stay = now.current < now.used && ready(now.threads[now.current]);
    const auto others = others_ready();
    if (!can_stay && others.empty()) break;
    std::size_t next = now.current;
    if (can_stay) {
      if (!others.empty() && now.preemptions < now.bound) {
        const auto c = choose(static_cast<unsigned>(others.size() + 1));
        if (c != 0) {
          next = others[c - 1];
          ++now.preemptions;
        }
      }
    } else {
      next = others[others.size() == 1 ? 0 : choose(static_cast<unsigned>(others.size()))];
    }
    resume(next);
    if (!now.failure.empty()) return;
    if (++now.steps > max_steps) {
      now.failure = "no end in sight: livelock";
      return;
    }
  }
  for (std::size_t i = 0; i < now.used; ++i) {
    if (!now.threads[i].ended) {
      now.failure = "everybody waits: a wake was lost";
      return;
    }
  }
  program.check();
}

bool advance_trail() {
  while (!now.trail.empty()) {
    if (++now.trail.back().taken < now.trail.back().options) return true;
    now.trail.pop_back();
  }
  return false;
}

}  // namespace

void step() noexcept {
  if (!now.running) return;
  go_home();
  now.threads[now.current].heard = now.news;
}

void touched_after_its_end() noexcept {
  fail("an object is used after its end");
}

void changed() noexcept {
  ++now.news;
}

void until(std::function<bool()> holds) noexcept {
  now.threads[now.current].condition = std::move(holds);
  go_home();
}

void pause() noexcept {
  if (!now.running) return;
  thread& self = now.threads[now.current];
  self.waits_since = self.heard;
  if (now.news == self.heard) go_home();
}

void fail(const char* what) noexcept {
  if (now.failure.empty()) now.failure = what;
  if (now.running) {
    now.running = false;
    go_home();  // the execution ends here; this stack is never resumed
  }
  std::printf("FAILED outside a thread: %s\n", what);
  std::exit(1);
}

void require(bool claim, const char* what) noexcept {
  if (claim) return;
  if (now.running) fail(what);
  if (now.failure.empty()) now.failure = what;
}

report run(const std::function<std::unique_ptr<scenario>()>& make, limits within) {
  report result;
  now.trail.clear();
  now.bound = within.preemptions;
  do {
    now.running = false;
    const auto program = make();
    execute(*program);
    ++result.executions;
    if (!now.failure.empty()) {
      result.failure = now.failure;
      for (std::size_t i = 0; i < now.depth; ++i) result.trail += static_cast<char>('0' + now.trail[i].taken);
      return result;
    }
    now.trail.resize(now.depth);
    if (result.executions >= within.executions) return result;
  } while (advance_trail());
  result.exhausted = true;
  return result;
}

}  // namespace explore

// What the leaf headers need of the platform, in the model's terms.
namespace ramie::platform {

void fatal(const char* format, ...) noexcept {
  static char text[256];
  va_list args;
  va_start(args, format);
  std::vsnprintf(text, sizeof text, format, args);
  va_end(args);
  explore::fail(text);
}

namespace detail {
constinit bool membarrier_granted = false;
void membarrier_all_threads() noexcept {}
}  // namespace detail

}  // namespace ramie::platform
