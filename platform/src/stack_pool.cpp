// SPDX-License-Identifier: BSL-1.0
#include <ramie/platform/stack_pool.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <new>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/faults.hpp>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace ramie::platform {

namespace {

constexpr std::size_t first_region_slots = 8;
constexpr std::size_t largest_region = std::size_t{256} << 20;

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
  return ::madvise(page, page_size, MADV_GUARD_INSTALL) == 0;
}

bool guard_by_mprotect(void* page) noexcept {
  if (faults::strikes(fault::guard_by_mprotect)) return false;
  return ::mprotect(page, page_size, PROT_NONE) == 0;
}

bool kernel_has_guards() noexcept {
  void* const probe = ::mmap(nullptr, page_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (probe == MAP_FAILED) return false;
  const bool granted = guard_by_madvise(probe);
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
  std::uint32_t carved = 0;
  std::uint8_t size_class = 0;
  std::size_t range = range_capacity;

  [[nodiscard]] std::size_t stride() const noexcept { return slot_bytes(size_class); }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots * stride(); }
  [[nodiscard]] char* slot_at(std::uint32_t i) const noexcept { return base + i * stride(); }
  [[nodiscard]] stack_block* block_at(std::uint32_t i) const noexcept {
    char* const end = slot_at(i) + stride() - (i % colours) * colour_step - sizeof(stack_block);
    return reinterpret_cast<stack_block*>(reinterpret_cast<std::uintptr_t>(end) & ~std::uintptr_t{63});
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

stack_pool::stack_pool(entry_function entry, guard_kind guards, std::size_t hot_limit) noexcept
    : entry_(entry),
      hot_limit_(hot_limit),
      guard_by_madvise_(guards == guard_kind::automatic ? kernel_has_guards() : guards == guard_kind::madvise) {}

stack_pool::~stack_pool() {
  if (taken_ != 0) {
    fatal("%zu fiber stacks are still in use while their pool is destroyed: corruption of the runtime.", taken_);
  }
  for (auto& each : shelves_) {
    for (auto* stack = each.hot; stack != nullptr; stack = stack->next.get()) {
      char* const end = reinterpret_cast<char*>(stack) + sizeof(stack_block);
      annotate::stack_destroyed(stack->note, stack->low, static_cast<std::size_t>(end - stack->low));
    }
  }
}

stack_block* stack_pool::take(std::uint8_t size_class) noexcept {
  std::lock_guard hold(mutex_);
  shelf& from = shelves_[size_class];
  stack_block* stack = from.hot;
  if (stack != nullptr) {
    annotate::take_over(&stack->note);
    from.hot = stack->next.get();
    --from.hot_count;
  } else {
    stack = take_cold(from, size_class);
  }
  if (stack != nullptr) ++taken_;
  return stack;
}

stack_block* stack_pool::take_cold(shelf& from, std::uint8_t size_class) noexcept {
  if (!from.cold.empty()) {
    const auto [in, slot] = from.cold.back();
    from.cold.pop_back();
    return prepare(*in, slot);
  }
  region* const in = region_with_room(from, size_class);
  if (in == nullptr || !install_guard(in->slot_at(in->carved))) return nullptr;
  ++slots_;
  return prepare(*in, in->carved++);
}

stack_pool::region* stack_pool::region_with_room(shelf& from, std::uint8_t size_class) noexcept {
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

bool stack_pool::install_guard(char* slot) noexcept {
  return (guard_by_madvise_ && guard_by_madvise(slot)) || guard_by_mprotect(slot);
}

stack_block* stack_pool::prepare(region& in, std::uint32_t slot) noexcept {
  auto* const stack = new (in.block_at(slot)) stack_block;
  stack->low = in.slot_at(slot) + page_size;
  stack->region = &in;
  stack->slot = slot;
  stack->size_class = in.size_class;
  char* const top = reinterpret_cast<char*>(stack);
  const auto usable = static_cast<std::size_t>(top - stack->low);
  stack->resume_point = make_context(top, usable, entry_);
  annotate::stack_created(stack->note, stack->low, usable + sizeof(stack_block));
  annotate::hand_over(&stack->note);
  return stack;
}

void stack_pool::give_back(stack_block* stack) noexcept {
  std::lock_guard hold(mutex_);
  shelf& to = shelves_[stack->size_class];
  --taken_;
  stack->next.set(to.hot);
  to.hot = stack;
  if (++to.hot_count > hot_limit_) trim_wanted_.store(true, std::memory_order_relaxed);
  annotate::hand_over(&stack->note);
}

bool stack_pool::trim(std::size_t most) noexcept {
  if (!annotate::may_trim_stacks || !trim_wanted_.load(std::memory_order_relaxed)) return false;
  std::lock_guard hold(mutex_);
  for (auto& from : shelves_) {
    for (; from.hot_count > hot_limit_; --from.hot_count, --most) {
      if (most == 0) return true;
      stack_block* const stack = from.hot;
      annotate::take_over(&stack->note);
      from.hot = stack->next.get();
      auto* const home = static_cast<region*>(stack->region);
      from.cold.emplace_back(home, stack->slot);
      annotate::stack_destroyed(stack->note, stack->low, 0);
      ::madvise(stack->low, home->stride() - page_size, MADV_DONTNEED);
      ++trimmed_;
    }
  }
  trim_wanted_.store(false, std::memory_order_relaxed);
  return false;
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
