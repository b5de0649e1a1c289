// SPDX-License-Identifier: BSL-1.0
#include "simulator.hpp"

#include <cxxabi.h>
#include <link.h>

#include <algorithm>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>

#include <explore/memory.hpp>
#include <explore/simulated_thread.hpp>

#include <ramie/platform/clock.hpp>
#include <ramie/platform/context.hpp>
#include <ramie/platform/fatal.hpp>
#include <ramie/platform/futex.hpp>
#include <ramie/platform/thread_meter.hpp>

namespace scale {

namespace platform = ramie::platform;

namespace {

constexpr std::size_t stack_bytes = 256 * 1024;
constexpr picoseconds longest = 100'000'000'000'000;  // 100 s: nothing here takes so long

// The two words of the C++ runtime behind exceptions: each virtual processor has its own.
struct exception_words {
  void* caught;
  unsigned uncaught;
};
exception_words& exceptions() {
  return *reinterpret_cast<exception_words*>(abi::__cxa_get_globals());
}

struct processor {
  picoseconds clock = 0;
  unsigned number = 0;
  bool ended = false;
  const void* sleeps_at = nullptr;  // null: it is ready, or runs, or has ended
  bool in_line = false;             // it is among `ready`: it can go on, or sleeps no longer than until its clock
  platform::context at = nullptr;
  std::function<void()> body;
  std::unique_ptr<char[]> stack;
  std::vector<void*> carried;
};

// Counts by line and place in the code. Open addressing: nothing of the standard library, whose functions may be
// instrumented. What there is no room for is not counted.
class place_counts {
 public:
  void add(std::uintptr_t line, std::uintptr_t code) noexcept {
    auto i = ((code * 0x9e3779b97f4a7c15u) ^ (line * 0xbf58476d1ce4e5b9u)) >> 40 & (size - 1);
    for (int tries = 0; tries < 64; ++tries, i = (i + 1) & (size - 1)) {
      place_count& p = table_[i];
      if (p.transfers != 0 && (p.line != line || p.code != code)) continue;
      p = {line, code, p.transfers + 1};
      return;
    }
  }
  void clear() noexcept { std::memset(table_, 0, sizeof table_); }
  [[nodiscard]] std::vector<place_count> all() const {
    std::vector<place_count> found;
    for (const auto& p : table_) {
      if (p.transfers != 0) found.push_back(p);
    }
    return found;
  }

 private:
  static constexpr std::size_t size = std::size_t{1} << 18;
  place_count table_[size] = {};
};

struct simulation {
  cost_table costs;
  std::uint64_t seed = 0;
  cache_lines lines{cost_table{}.transfer};
  std::vector<std::unique_ptr<processor>> all;
  // A heap, the earliest clock on top.
  processor* ready[cache_lines::most_processors];
  std::size_t ready_count = 0;
  processor* current = nullptr;
  platform::context home = nullptr;
  bool running = false;  // inside a processor, and not in the simulator's own code
  std::uintptr_t own_storage = 0, own_storage_end = 0;  // the thread's, on which all of this happens
  std::uintptr_t image = 0;
  totals counted;
  place_counts places;
};
simulation now;
std::vector<void**> carried_slots;

// The heap of those that can go on ----------------------------------------------------------------------

bool later(const processor* a, const processor* b) noexcept {
  return a->clock != b->clock ? a->clock > b->clock : a->number > b->number;
}
void line_up(processor& p) noexcept {
  p.in_line = true;
  std::size_t at = now.ready_count++;
  for (; at > 0 && later(now.ready[(at - 1) / 2], &p); at = (at - 1) / 2) now.ready[at] = now.ready[(at - 1) / 2];
  now.ready[at] = &p;
}
void sink(std::size_t at, processor* p) noexcept {
  for (;;) {
    std::size_t child = 2 * at + 1;
    if (child >= now.ready_count) break;
    if (child + 1 < now.ready_count && later(now.ready[child], now.ready[child + 1])) ++child;
    if (!later(p, now.ready[child])) break;
    now.ready[at] = now.ready[child];
    at = child;
  }
  now.ready[at] = p;
}
processor* take_earliest() noexcept {
  processor* const first = now.ready[0];
  first->in_line = false;
  if (--now.ready_count != 0) sink(0, now.ready[now.ready_count]);
  return first;
}
void order_ready() noexcept {
  for (std::size_t i = now.ready_count / 2; i-- > 0;) sink(i, now.ready[i]);
}
void take_out(processor& p) noexcept {
  std::size_t at = 0;
  while (now.ready[at] != &p) ++at;
  p.in_line = false;
  --now.ready_count;
  now.ready[at] = now.ready[now.ready_count];
  order_ready();
}

// Switches ---------------------------------------------------------------------------------------------

[[gnu::noinline]] void go_home() noexcept {
  processor& self = *now.current;
  now.running = false;
  for (std::size_t i = 0; i < carried_slots.size(); ++i) self.carried[i] = *carried_slots[i];
  const exception_words mine = exceptions();
  const auto landed = platform::jump(now.home, nullptr);
  now.home = landed.from;
  exceptions() = mine;
  for (std::size_t i = 0; i < carried_slots.size(); ++i) *carried_slots[i] = self.carried[i];
  now.running = true;
}

// Whoever has an earlier clock goes first.
inline void step() noexcept {
  if (now.ready_count == 0 || !later(now.current, now.ready[0])) return;
  line_up(*now.current);
  go_home();
}

void wake_all_at(const void* address, unsigned most, picoseconds at) noexcept {
  for (auto& p : now.all) {
    if (most == 0) break;
    if (p->sleeps_at != address) continue;
    --most;
    p->sleeps_at = nullptr;
    if (p->in_line) take_out(*p);  // it would have slept no longer than until its clock
    p->clock = at;
    line_up(*p);
  }
}

void processor_entry(platform::arrival landed) {
  now.home = landed.from;
  for (void** slot : carried_slots) *slot = nullptr;
  exceptions() = {};
  now.running = true;
  now.current->body();
  now.running = false;
  processor& self = *now.current;
  self.body = nullptr;
  self.ended = true;
  wake_all_at(&self, ~0u, self.clock + now.costs.wake_latency);
  go_home();
  std::abort();
}

std::size_t add_processor(std::function<void()> body, picoseconds begins) {
  if (now.all.size() == cache_lines::most_processors) ramie::platform::fatal("too many threads to simulate");
  now.all.push_back(std::make_unique<processor>());
  processor& p = *now.all.back();
  p.number = static_cast<unsigned>(now.all.size() - 1);
  p.clock = begins;
  p.clock += static_cast<picoseconds>(((now.seed * 0x9e3779b97f4a7c15u + p.number * 0xbf58476d1ce4e5b9u) >> 20) % 1'000'000);
  p.body = std::move(body);
  p.stack = std::make_unique<char[]>(stack_bytes);
  p.carried.assign(carried_slots.size(), nullptr);
  p.at = platform::make_context(p.stack.get() + stack_bytes, stack_bytes, processor_entry, {});
  line_up(p);
  return p.number;
}

// Of the calling thread, in which all virtual processors run: each would have its own.
void find_own_storage() {
  ::dl_iterate_phdr(
      [](dl_phdr_info* image, std::size_t, void*) {
        if (now.image == 0) now.image = image->dlpi_addr;  // the program's comes first
        for (int i = 0; i < image->dlpi_phnum; ++i) {
          const auto& part = image->dlpi_phdr[i];
          if (part.p_type != PT_TLS || image->dlpi_tls_data == nullptr) continue;
          const auto begin = reinterpret_cast<std::uintptr_t>(image->dlpi_tls_data);
          if (now.own_storage == 0 || begin < now.own_storage) now.own_storage = begin;
          now.own_storage_end = std::max(now.own_storage_end, begin + part.p_memsz);
        }
        return 0;
      },
      nullptr);
}

inline bool fetch(std::uintptr_t address, bool writes, std::uintptr_t code) noexcept {
  if (address >= now.own_storage && address < now.own_storage_end) return false;
  processor& self = *now.current;
  const auto got = now.lines.access(self.number, address, writes, self.clock);
  self.clock = got.ready;
  if (!got.transferred) return false;
  ++now.counted.transfers;
  now.places.add(address / cache_lines::line_bytes, code);
  return true;
}

// The simulator's own code runs, which may be instrumented where it is the standard library's.
class pause_counting {
 public:
  pause_counting() noexcept { now.running = false; }
  ~pause_counting() { now.running = true; }
  pause_counting(const pause_counting&) = delete;
  pause_counting& operator=(const pause_counting&) = delete;
};

}  // namespace

void simulate(const cost_table& costs, std::uint64_t seed, std::function<void()> body) {
  now.costs = costs;
  now.seed = seed;
  now.lines = cache_lines(costs.transfer);
  find_own_storage();
  (void)add_processor(std::move(body), 0);
  while (now.ready_count != 0) {
    now.current = take_earliest();
    processor& next = *now.current;
    next.sleeps_at = nullptr;
    if (next.clock > longest) ramie::platform::fatal("the simulation does not end: livelock");
    const auto landed = platform::jump(next.at, nullptr);
    now.current->at = landed.from;
  }
  for (const auto& p : now.all) {
    if (!p->ended) ramie::platform::fatal("processor %u sleeps for ever: a wake was lost", p->number);
  }
}

std::int64_t now_ns() noexcept {
  return now.current == nullptr ? 0 : now.current->clock / 1'000;
}

void spend(picoseconds time) noexcept {
  if (now.running) now.current->clock += time;
}

void begin_counting() noexcept {
  now.counted = {};
  now.places.clear();
}
totals end_counting() noexcept {
  return now.counted;
}
std::vector<place_count> transfer_places() {
  const pause_counting here;
  return now.places.all();
}

void carry(void** slot) {
  carried_slots.push_back(slot);
}

void access_plain(std::uintptr_t address, bool writes, std::uintptr_t code) noexcept {
  if (!now.running) return;
  ++now.counted.accesses;
  now.current->clock += now.costs.access;
  (void)fetch(address, writes, code - now.image);
}

void access_range(std::uintptr_t address, std::size_t bytes, bool writes, std::uintptr_t code) noexcept {
  for (auto at = address; at < address + bytes; at = (at | (cache_lines::line_bytes - 1)) + 1) {
    access_plain(at, writes, code);
  }
}

unsigned current_processor() noexcept {
  return now.current != nullptr ? now.current->number : cache_lines::most_processors;
}

}  // namespace scale

// What the library asks of the explorer -----------------------------------------------------------------

namespace explore {

using scale::now;

[[gnu::noinline]] void access_atomic(const void* address, access_kind kind) noexcept {
  if (!now.running) return;
  scale::step();
  ++now.counted.accesses;
  now.current->clock += now.costs.access;
  if (kind == access_kind::both) {
    ++now.counted.rmws;
    now.current->clock += now.costs.rmw;
  }
  const auto code = reinterpret_cast<std::uintptr_t>(__builtin_return_address(0)) - now.image;
  if (scale::fetch(reinterpret_cast<std::uintptr_t>(address), kind != access_kind::load, code)) {
    ++now.counted.atomic_transfers;
  }
}

void step() noexcept {
  if (now.running) scale::step();
}
void changed() noexcept {}

void pause_processor() noexcept {
  scale::spend(now.costs.pause);
}
void yield_thread() noexcept {
  scale::spend(now.costs.system_call);
}

void sleep_at(const void* address, std::int64_t until) noexcept {
  if (!now.running) return;
  auto& self = *now.current;
  self.clock += now.costs.system_call;
  self.sleeps_at = address;
  if (until >= 0) {
    self.clock = std::max(self.clock, 1'000 * until + now.costs.wake_latency);
    scale::line_up(self);
  }
  scale::go_home();
}

void wake_at(const void* address, unsigned most) noexcept {
  if (!now.running) return;
  scale::step();
  const bool any = std::any_of(now.all.begin(), now.all.end(), [=](const auto& p) { return p->sleeps_at == address; });
  auto& self = *now.current;
  self.clock += any ? now.costs.wake_call : now.costs.system_call;
  if (!any) return;
  ++now.counted.wakes;
  const scale::pause_counting here;
  scale::wake_all_at(address, most, self.clock + now.costs.wake_latency);
}

std::size_t start_processor(std::function<void()> body) {
  if (!now.running) ramie::platform::fatal("a thread outside the simulation");
  const scale::pause_counting here;
  now.current->clock += now.costs.thread;
  return scale::add_processor(std::move(body), now.current->clock);
}

void join_processor(std::size_t number) noexcept {
  auto& other = *now.all[number];
  scale::step();
  if (!other.ended) sleep_at(&other, -1);
}

// A fence of its own, or the store that is one.
std::memory_order order_at(const std::source_location&, access_kind kind, std::memory_order asked) noexcept {
  if (kind == access_kind::store && asked == std::memory_order_seq_cst) scale::spend(now.costs.rmw);
  return asked;
}
void fence(std::memory_order order) noexcept {
  if (order == std::memory_order_seq_cst) scale::spend(now.costs.rmw);
}
void light_fence(std::memory_order) noexcept {}
bool has_membarrier() noexcept {
  return true;
}
// It interrupts everybody who runs.
void heavy_fence(std::memory_order) noexcept {
  if (!now.running) return;
  scale::step();
  ++now.counted.barriers;
  auto& self = *now.current;
  std::size_t interrupted = 0;
  for (std::size_t i = 0; i < now.ready_count; ++i) {
    if (now.ready[i]->sleeps_at != nullptr) continue;
    ++interrupted;
    now.ready[i]->clock += now.costs.interrupt;
  }
  scale::order_ready();
  self.clock += now.costs.rmw + now.costs.barrier + static_cast<std::int64_t>(interrupted) * now.costs.barrier_each;
}

}  // namespace explore

namespace ramie::platform {

void fatal(const char* format, ...) noexcept {
  scale::now.running = false;
  va_list args;
  va_start(args, format);
  std::fputs("bench/scale: ", stderr);
  std::vfprintf(stderr, format, args);
  std::fputc('\n', stderr);
  va_end(args);
  std::_Exit(1);
}

time_point steady_clock::now() const noexcept {
  scale::spend(scale::now.costs.clock);
  return time_point(std::chrono::nanoseconds(scale::now_ns()));
}
const steady_clock& steady_clock::instance() noexcept {
  static const steady_clock the_clock;
  return the_clock;
}

// Every thread has a processor: none ever waits for one.
thread_usage thread_meter::read() noexcept {
  return {};
}
void thread_meter::let_go() noexcept {}

void choose_fences() noexcept {}

void futex_wait(atomic<std::uint32_t>& word, std::uint32_t expected, const timespec* until) noexcept {
  if (word.load(std::memory_order_relaxed) != expected) return;
  explore::sleep_at(&word, until == nullptr ? -1 : until->tv_sec * 1'000'000'000 + until->tv_nsec);
}
void futex_wake_one(atomic<std::uint32_t>* word) noexcept {
  explore::wake_at(word, 1);
}

}  // namespace ramie::platform
