// SPDX-License-Identifier: BSL-1.0
#include "hang_report.hpp"

#include <cstdio>

#include "runtime/src/sched/registry.hpp"
#include "runtime/src/sched/scheduler.hpp"
#include <support/test.hpp>
#include "runtime/src/task/extras.hpp"

namespace test {

namespace {

using ramie::runtime_internal::fiber;

void describe_wait(const fiber& f, char* text, std::size_t size) noexcept {
  const ramie::runtime_internal::wait_reason* const why = f.reason.get();
  if (why == nullptr) {
    *text = 0;
  } else {
    (void)std::snprintf(text, size, ", waits: %s (%s:%u)", why->kind, why->where.file_name(),
                        static_cast<unsigned>(why->where.line()));
  }
}

void describe_fiber(const fiber& f, char* text, std::size_t size) noexcept {
  char wait[400];
  describe_wait(f, wait, sizeof wait);
  const auto site = f.site.get();
  const char* const name = f.has_extras.get() ? ramie::runtime_internal::name_in(f.record) : "";
  (void)std::snprintf(text, size, "fiber #%u%s%s%s, spawned at %s:%u: %s%s", f.number, *name != 0 ? " '" : "", name,
                      *name != 0 ? "'" : "", site.file_name(), static_cast<unsigned>(site.line()),
                      ramie::runtime_internal::name_of(f.word.load().state()), wait);
}

}  // namespace

void describe_this_thread(char* text, std::size_t size) noexcept {
  *text = 0;
  if (const fiber* const f = ramie::runtime_internal::current_fiber()) return describe_fiber(*f, text, size);
  if (ramie::runtime_internal::this_worker() != nullptr) {
    (void)std::snprintf(text, size, "a worker between fibers");
  } else if (const fiber* const proxy = ramie::runtime_internal::known_self()) {
    char wait[400];
    describe_wait(*proxy, wait, sizeof wait);
    (void)std::snprintf(text, size, "a plain thread%s", wait);
  }
}

void describe_fibers(void (*say)(const char* line)) noexcept {
  int number = 0;
  ramie::runtime_internal::for_each_scheduler([&](ramie::runtime_internal::scheduler& s) {
    char line[1000];
    const auto workers = s.pool.live_hint();
    (void)std::snprintf(line, sizeof line, "  runtime %d: %u workers, %zu entries queued outside them\n", ++number, workers,
                        s.queues.size());
    say(line);
    int told = 0;
    s.frames.for_each([&](fiber& f) {
      if (f.home == nullptr || ramie::runtime_internal::has_no_fiber(f.word.load().state())) return;
      if (++told > 100) return;
      char text[900];
      describe_fiber(f, text, sizeof text);
      (void)std::snprintf(line, sizeof line, "    %s\n", text);
      say(line);
    });
    if (told <= 100) return;
    (void)std::snprintf(line, sizeof line, "    and %d more\n", told - 100);
    say(line);
  });
}

}  // namespace test
