// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/stack_pool.hpp>

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <new>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/faults.hpp>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef SYS_process_madvise
#define SYS_process_madvise 440
#endif

namespace ramie::platform {

namespace {

constexpr std::size_t first_region_slots = 8;
constexpr std::size_t largest_region = std::size_t{256} << 20;

// Guards ahead of need cost page tables, a page for each 2 MiB they lie apart.
constexpr std::uint32_t largest_guard_batch = 32;
constexpr std::size_t guarded_ahead = std::size_t{4} << 20;

// A batch of stacks that have to be touched is this part of what is out already, at most.
constexpr std::size_t share_ahead = 8;

constexpr int this_process = -10000;  // PIDFD_SELF

// Stacks start at the same offset in their pages, so their hottest lines would all compete for the
// same cache sets. Shifting the start by a few lines spreads them; more would push a parked fiber
// into a second page.
constexpr std::size_t colours = 8;
constexpr std::size_t colour_step = 64;

// What the overflow handler may read at any moment. Entries are written once a region exists and
// cleared before it is unmapped; a full table costs the name of the overflow, not its detection.
struct guarded_range {
  std::atomic<char*> base{nullptr};
  std::atomic<std::size_t> bytes{0};
  std::atomic<std::uint8_t> size_class{0};
};
constexpr std::size_t range_capacity = 4096;
guarded_range ranges[range_capacity];

std::size_t announce_range(char* base, std::size_t bytes, std::uint8_t size_class) noexcept {
  for (std::size_t i = 0; i < range_capacity; ++i) {
    char* nobody = nullptr;
    if (ranges[i].bytes.load(std::memory_order_relaxed) != 0) continue;
    if (!ranges[i].base.compare_exchange_strong(nobody, base, std::memory_order_acq_rel)) continue;
    ranges[i].size_class.store(size_class, std::memory_order_relaxed);
    ranges[i].bytes.store(bytes, std::memory_order_release);
    return i;
  }
  return range_capacity;
}

void withdraw_range(std::size_t index) noexcept {
  if (index == range_capacity) return;
  ranges[index].bytes.store(0, std::memory_order_release);
  ranges[index].base.store(nullptr, std::memory_order_release);
}

bool guard_by_madvise(void* page) noexcept {
  if (faults::strikes(fault::guard_by_madvise)) return false;
  if (faults::strikes(fault::guard_feigned)) return true;
  return ::madvise(page, page_size, MADV_GUARD_INSTALL) == 0;
}

// Whether a page can't be touched, found out without touching it: the kernel tries for us, and returns EFAULT if that
// would have been a SIGSEGV. Any other answer is a no: a layer that ignores advice it does not know ignores this one,
// too. Rejected: a system call that reads from the page. write() needs a descriptor; process_vm_readv is often
// forbidden; emulators and valgrind read the arguments of smaller ones themselves, and would crash.
bool is_guarded(void* page) noexcept {
  return ::madvise(page, page_size, MADV_POPULATE_READ) != 0 && errno == EFAULT;
}

bool guard_by_mprotect(void* page) noexcept {
  if (faults::strikes(fault::guard_by_mprotect)) return false;
  return ::mprotect(page, page_size, PROT_NONE) == 0;
}

// An emulator may accept any advice and do nothing (qemu-user): so one guard is tried out.
bool kernel_has_guards() noexcept {
  void* const probe = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  const bool granted = guard_by_madvise(probe) && is_guarded(probe);
  ::munmap(probe, page_size);
  return granted;
}

char* map_region(std::size_t bytes) noexcept {
  if (faults::strikes(fault::stack_mapping)) return nullptr;
  void* const base =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (base == MAP_FAILED) return nullptr;
  ::madvise(base, bytes, MADV_NOHUGEPAGE);  // a huge page would make every parked fiber cost 2 MiB
  return static_cast<char*>(base);
}

}  // namespace

struct stack_pool::region {
  char* base = nullptr;
  std::uint32_t slots = 0;
  std::uint32_t carved = 0;   // taken at least once: the first so many
  std::uint32_t guarded = 0;  // at least as many
  std::uint8_t size_class = 0;
  std::size_t range = range_capacity;

  [[nodiscard]] std::size_t stride() const noexcept { return slot_bytes(size_class); }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots * stride(); }
  [[nodiscard]] char* slot_at(std::uint32_t i) const noexcept { return base + i * stride(); }
  [[nodiscard]] stack_block* block_at(std::uint32_t i) const noexcept {
    char* const end = slot_at(i) + stride() - (i % colours) * colour_step - sizeof(stack_block);
    return reinterpret_cast<stack_block*>(reinterpret_cast<std::uintptr_t>(end) & ~std::uintptr_t{63});
  }

  [[nodiscard]] std::uint32_t guard_batch() const noexcept {
    const auto most = std::min<std::size_t>(largest_guard_batch, guarded_ahead / stride());
    return static_cast<std::uint32_t>(std::clamp<std::size_t>(slots / 4, 1, std::max<std::size_t>(1, most)));
  }

  ~region() {
    if (base == nullptr) return;
    withdraw_range(range);
    ::munmap(base, bytes());
  }
};

std::uint8_t stack_class_for(std::size_t bytes) noexcept {
  const auto units = std::bit_ceil(std::max(bytes, min_stack_size)) / min_stack_size;
  return static_cast<std::uint8_t>(std::countr_zero(units));
}

stack_pool::stack_pool(entry_function entry, guard_kind guards, std::size_t hot_limit, stack_supply* supply) noexcept
    : entry_(entry),
      hot_limit_(hot_limit),
      supply_(supply),
      guard_by_madvise_(guards == guard_kind::automatic ? kernel_has_guards() : guards == guard_kind::madvise) {}

stack_pool::~stack_pool() {
  if (taken_ != 0) {
    fatal("%zu fiber stacks are still in use while their pool is destroyed: corruption of the runtime.", taken_);
  }
  for (auto& each : by_class_) {
    while (each.hot != nullptr) destroy(pop_hot(each));
  }
}

stack_block* stack_pool::pop_hot(class_stacks& from) noexcept {
  stack_block* const stack = from.hot;
  annotate::take_over(&stack->note);
  from.hot = stack->next.get();
  --from.hot_count;
  return stack;
}

// The end of a stack. What was carved goes with its region.
void stack_pool::destroy(stack_block* stack) noexcept {
  char* const end = reinterpret_cast<char*>(stack) + sizeof(stack_block);
  annotate::stack_destroyed(stack->note, stack->low, static_cast<std::size_t>(end - stack->low));
  if (!supplied(stack->size_class)) return;
  const stack_supply::memory whole{stack->low - page_size, static_cast<char*>(stack->region)};
  supply_->deallocate(whole);
}

stack_block* stack_pool::take(std::uint8_t size_class) noexcept {
  std::uint32_t one = 1;
  return take_batch(size_class, one);
}

stack_block* stack_pool::take_batch(std::uint8_t size_class, std::uint32_t& count) noexcept {
  const std::uint32_t wanted = std::min(count, largest_batch);
  place cold[largest_batch];
  {
    std::lock_guard hold(mutex_);
    class_stacks& from = by_class_[size_class];
    if (stack_block* const first = from.hot) {
      stack_block* last = first;
      annotate::take_over(&last->note);
      for (count = 1; count < wanted && last->next.get() != nullptr; ++count) {
        last = last->next.get();
        annotate::take_over(&last->note);
      }
      from.hot = last->next.get();
      last->next.set(nullptr);
      from.hot_count -= count;
      taken_ += count;
      return first;
    }
    if (!supplied(size_class)) {
      const auto ahead = std::clamp<std::size_t>(taken_ / share_ahead, 1, wanted);
      count = take_cold(from, size_class, cold, static_cast<std::uint32_t>(ahead));
      taken_ += count;
    }
  }
  if (supplied(size_class)) {
    stack_block* const one = take_supplied(size_class);
    count = one != nullptr ? 1 : 0;
    return one;
  }
  if (count > 1) {
    iovec first_pages[largest_batch];
    for (std::uint32_t i = 0; i < count; ++i) {
      first_pages[i] = {cold[i].in->slot_at(cold[i].slot + 1) - page_size, page_size};
    }
    (void)advise_at_once(first_pages, count, MADV_POPULATE_WRITE);  // a wish: they are touched below
  }
  stack_block* first = nullptr;
  for (std::uint32_t i = count; i-- > 0;) first = prepare(cold[i], first);
  return first;
}

stack_block* stack_pool::take_supplied(std::uint8_t size_class) noexcept {
  const auto memory = supply_->allocate(size_class);
  if (memory.low == nullptr) return nullptr;
  const auto end = reinterpret_cast<std::uintptr_t>(memory.top - sizeof(stack_block)) & ~std::uintptr_t{63};
  stack_block* const stack = lay_out(reinterpret_cast<stack_block*>(end), memory.low + page_size, size_class);
  stack->region = memory.top;
  std::lock_guard hold(mutex_);
  ++slots_;
  ++taken_;
  return stack;
}

std::uint32_t stack_pool::take_cold(class_stacks& from, std::uint8_t size_class, place* into,
                                    std::uint32_t most) noexcept {
  std::uint32_t count = 0;
  for (; count < most && !from.cold.empty(); from.cold.pop_back()) into[count++] = from.cold.back();
  if (count > 0) return count;
  region* const in = region_with_free_slots(from, size_class);
  if (in == nullptr || (in->carved == in->guarded && !install_guards(*in))) return 0;
  for (; count < most && in->carved < in->guarded; ++slots_) into[count++] = {in, in->carved++};
  return count;
}

stack_pool::region* stack_pool::region_with_free_slots(class_stacks& from, std::uint8_t size_class) noexcept {
  if (!from.regions.empty() && from.regions.back()->carved < from.regions.back()->slots) {
    return from.regions.back().get();
  }
  const std::size_t wanted = from.regions.empty() ? first_region_slots : from.regions.back()->slots * 2;
  std::size_t slots =
      std::clamp<std::size_t>(wanted, 1, std::max<std::size_t>(1, largest_region / slot_bytes(size_class)));
  try {
    auto fresh = std::make_unique<region>();
    fresh->size_class = size_class;
    while (slots > 0 && (fresh->base = map_region(slots * slot_bytes(size_class))) == nullptr) slots /= 2;
    if (fresh->base == nullptr) return nullptr;
    fresh->slots = static_cast<std::uint32_t>(slots);
    from.cold.reserve(from.cold.capacity() + slots);  // so that giving back never allocates
    fresh->range = announce_range(fresh->base, fresh->bytes(), size_class);
    from.regions.push_back(std::move(fresh));
    return from.regions.back().get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// Guards the slots that come next: one, or several if the region is large. False: not even the first.
bool stack_pool::install_guards(region& in) noexcept {
  const std::uint32_t begin = in.guarded;
  std::uint32_t end = begin + 1;
  iovec pages[largest_guard_batch];
  bool granted[largest_guard_batch];
  std::uint32_t at_once = 0;
  if (guard_by_madvise_) {
    end = begin + std::min(in.guard_batch(), in.slots - begin);
    for (std::uint32_t i = begin; i < end; ++i) {
      granted[i - begin] = !faults::strikes(fault::guard_by_madvise);
      if (granted[i - begin]) pages[at_once++] = {in.slot_at(i), page_size};
    }
    at_once = at_once > 1 ? advise_at_once(pages, at_once, MADV_GUARD_INSTALL) : 0;
  }
  for (; in.guarded < end; ++in.guarded) {
    char* const page = in.slot_at(in.guarded);
    const bool may = guard_by_madvise_ && granted[in.guarded - begin];
    if (may && at_once > 0) {
      --at_once;
    } else if (!(may && ::madvise(page, page_size, MADV_GUARD_INSTALL) == 0) && !guard_by_mprotect(page)) {
      break;
    }
  }
  return in.guarded > begin;
}

// How many of them took the advice, from the first on.
std::uint32_t stack_pool::advise_at_once(const iovec* them, std::uint32_t count, int advice) noexcept {
  if (!at_once_.load(std::memory_order_relaxed)) return 0;
  long bytes = -1;
  if (faults::strikes(fault::advice_at_once)) {
    errno = ENOSYS;
  } else {
    bytes = ::syscall(SYS_process_madvise, this_process, them, std::size_t{count}, advice, 0u);
  }
  if (bytes < 0 && errno != ENOMEM && errno != EAGAIN && errno != EINTR && errno != EFAULT) {
    at_once_.store(false, std::memory_order_relaxed);
  }
  std::uint32_t done = 0;
  for (; done < count && bytes >= static_cast<long>(them[done].iov_len); ++done) {
    bytes -= static_cast<long>(them[done].iov_len);
  }
  return done;
}

stack_block* stack_pool::prepare(const place& at, stack_block* next) noexcept {
  stack_block* const stack =
      lay_out(at.in->block_at(at.slot), at.in->slot_at(at.slot) + page_size, at.in->size_class);
  stack->next.set(next);
  stack->region = at.in;
  stack->slot = at.slot;
  return stack;
}

stack_block* stack_pool::lay_out(stack_block* at, char* low, std::uint8_t size_class) noexcept {
  auto* const stack = new (at) stack_block;
  char* const top = reinterpret_cast<char*>(stack);
  const auto usable = static_cast<std::size_t>(top - low);
  stack->low = low;
  stack->call_floor = low + call_overhead;
  stack->call_span = usable > call_overhead + min_stack_size ? usable - call_overhead - min_stack_size : 0;
  stack->size_class = size_class;
  stack->resume_point = make_context(top, usable, entry_, floats_);
  annotate::stack_created(stack->note, low, usable + sizeof(stack_block));
  annotate::hand_over(&stack->note);
  return stack;
}

void stack_pool::give_back(stack_block* stack) noexcept {
  annotate::hand_over(&stack->note);
  give_batch(*stack, *stack, 1);
}

void stack_pool::give_batch(stack_block& first, stack_block& last, std::uint32_t count) noexcept {
  std::lock_guard hold(mutex_);
  class_stacks& to = by_class_[first.size_class];
  taken_ -= count;
  last.next.set(to.hot);
  to.hot = &first;
  to.hot_count += count;
  if (to.hot_count > hot_limit_) trim_wanted_.store(true, std::memory_order_relaxed);
}

bool stack_pool::trim(std::size_t most) noexcept {
  if (!annotate::may_trim_stacks || !trim_wanted_.load(std::memory_order_relaxed)) return false;
  std::unique_lock hold(mutex_);
  for (auto& from : by_class_) {
    while (from.hot_count > hot_limit_) {
      if (most == 0) return true;
      if (supplied(from.hot->size_class)) {
        trim_supplied(from, most, hold);
      } else {
        trim_carved(from, most);
      }
    }
  }
  trim_wanted_.store(false, std::memory_order_relaxed);
  return false;
}

void stack_pool::trim_carved(class_stacks& from, std::size_t& most) noexcept {
  place slots[largest_batch];
  std::uint32_t count = 0;
  for (; count < largest_batch && most > 0 && from.hot_count > hot_limit_; --most) {
    stack_block* const stack = pop_hot(from);
    slots[count++] = {static_cast<region*>(stack->region), stack->slot};
    annotate::stack_destroyed(stack->note, stack->low, 0);
  }
  trim_slots(slots, count);
  from.cold.insert(from.cold.end(), slots, slots + count);  // it does not allocate: see region_with_free_slots
}

void stack_pool::trim_supplied(class_stacks& from, std::size_t& most, std::unique_lock<mutex>& hold) noexcept {
  stack_block* const stack = pop_hot(from);
  --most;
  --slots_;
  ++trimmed_;
  hold.unlock();
  destroy(stack);
  hold.lock();
}

void stack_pool::trim_slots(const place* slots, std::uint32_t count) noexcept {
  iovec stacks[largest_batch];
  for (std::uint32_t i = 0; i < count; ++i) {
    const region& in = *slots[i].in;
    stacks[i] = {in.slot_at(slots[i].slot) + page_size, in.stride() - page_size};
  }
  for (std::uint32_t i = count > 1 ? advise_at_once(stacks, count, MADV_DONTNEED) : 0; i < count; ++i) {
    ::madvise(stacks[i].iov_base, stacks[i].iov_len, MADV_DONTNEED);
  }
  trimmed_ += count;
}

stack_pool::census stack_pool::count() const noexcept {
  std::lock_guard hold(mutex_);
  return {slots_, taken_, trimmed_, guard_by_madvise_};
}

std::size_t promise_of_guard_at(const void* address) noexcept {
  const auto* const at = static_cast<const char*>(address);
  for (const auto& range : ranges) {
    const std::size_t bytes = range.bytes.load(std::memory_order_acquire);
    const char* const base = range.base.load(std::memory_order_acquire);
    if (bytes == 0 || at < base || at >= base + bytes) continue;
    const auto size_class = range.size_class.load(std::memory_order_relaxed);
    const bool in_guard = static_cast<std::size_t>(at - base) % slot_bytes(size_class) < page_size;
    return in_guard ? promised_bytes(size_class) : 0;
  }
  return 0;
}

}  // namespace ramie::platform
