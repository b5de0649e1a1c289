// SPDX-License-Identifier: BSL-1.0
#include "block_store.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include <ramie/platform/annotate.hpp>
#include <ramie/platform/big_memory.hpp>
#include <ramie/platform/linked_list.hpp>
#include <ramie/runtime/current.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

namespace {

constexpr std::size_t first_run_bytes = 1024;
constexpr std::size_t kept_run_bytes = 16 * 1024;
constexpr std::uint32_t kept_runs = 8;  // by a worker
constexpr std::size_t largest_small_run_bytes = 256 * 1024;

// How large the next run is of those who hold so much.
std::size_t next_run_bytes(std::size_t held) noexcept {
  if (held < first_run_bytes) return first_run_bytes;
  return held < kept_runs * kept_run_bytes ? kept_run_bytes : std::min(held, largest_small_run_bytes);
}

// Acquire: pairs with the releases of fiber and handle.
bool reusable(const task_block& task) noexcept {
  return has_finished(task) && task.dropped.load(std::memory_order_acquire);
}

// A look at everything pays if a quarter of it may be free.
bool worthwhile(std::uint64_t ended, std::uint64_t at_last_scan, std::uint64_t held) noexcept {
  return ended - at_last_scan >= held / 4 + 1;
}

}  // namespace

void block_store::forget_all() noexcept {
  first_small_.bytes = sizeof first_small_.storage;
  first_medium_.bytes = sizeof first_medium_.storage;
  const auto preset = [this](unsigned size_class, run* first) {
    blocks_of_size& mine = sizes_[size_class];
    mine = {};
    free_of(size_class).clear();
    if (first == nullptr) return;
    mine.runs = first;
    mine.bump = first->begin();
    mine.end = first->begin() + first->bytes;
    mine.blocks = first->bytes / bytes_of(size_class);
  };
  preset(0, &first_small_);
  preset(1, &first_medium_);
  for (unsigned c = 2; c < class_count; ++c) preset(c, nullptr);
}

void* block_store::allocate_slow(unsigned size_class, std::uint64_t ended) {
  blocks_of_size& mine = sizes_[size_class];
  if (worthwhile(ended, mine.ended_at_last_scan, mine.blocks)) {
    mine.ended_at_last_scan = ended;
    for_each_of(size_class, [this](task_block& task) {
      if (!reusable(task)) return;
      destroy_result(task);
      recycle(&task, task.origin);
    });
  }
  if (free_of(size_class).empty()) add_run(size_class);
  return try_allocate(size_class);
}

void block_store::add_run(unsigned size_class) {
  blocks_of_size& mine = sizes_[size_class];
  const std::size_t held = mine.blocks * bytes_of(size_class);
  const bool huge = held >= platform::huge_page;
  const std::size_t room = platform::huge_page - sizeof(run);
  const std::size_t bytes = huge ? room / bytes_of(size_class) * bytes_of(size_class)
                                 : next_run_bytes(held);
  void* memory = nullptr;
  if (huge) {
    memory = platform::take_huge_page();
  } else if (bytes == first_run_bytes && spare_ != nullptr) {
    memory = std::exchange(spare_, nullptr);
  } else {
    memory = take_run(bytes);
  }
  run* const fresh = ::new (memory) run{mine.runs, bytes, huge};
  mine.runs = fresh;
  mine.bump = fresh->begin();
  mine.end = fresh->begin() + bytes;
  mine.blocks += bytes / bytes_of(size_class);
  grown_ = true;
}

void* block_store::take_run(std::size_t bytes) {
  worker_local* const local = bytes == kept_run_bytes ? this_worker_local() : nullptr;
  if (local == nullptr || local->memory.first.get() == nullptr) {
    return ::operator new(sizeof(run) + bytes, std::align_val_t(alignof(run)));
  }
  auto* const kept = static_cast<run*>(local->memory.first.get());
  platform::annotate::take_over(kept);
  local->memory.first.set(kept->older);
  local->memory.free_slots.add(1);
  return kept;
}

void block_store::give_run(run* r) noexcept {
  const auto free = [](void* memory) { ::operator delete(memory, std::align_val_t(alignof(run))); };
  worker_local* const local = r->bytes == kept_run_bytes ? this_worker_local() : nullptr;
  if (local == nullptr) return free(r);
  worker_cache& here = local->memory;
  if (here.empty_out.get() == nullptr) {
    here.free_slots.set(kept_runs);
    here.empty_out.set([](worker_cache& s) noexcept {
      while (auto* const kept = static_cast<run*>(s.first.get())) {
        s.first.set(kept->older);
        ::operator delete(kept, std::align_val_t(alignof(run)));
      }
    });
  }
  if (here.free_slots.get() == 0) return free(r);
  r->older = static_cast<run*>(here.first.get());
  platform::annotate::hand_over(r);
  here.first.set(r);
  here.free_slots.add(-1);
}

void* block_store::allocate_solo(std::size_t bytes, std::size_t alignment, std::uint64_t ended) {
  if (worthwhile(ended, solo_ended_at_last_scan_, solo_count_)) {
    solo_ended_at_last_scan_ = ended;
    for (solo *s = solos_, *next = nullptr; s != nullptr; s = next) {
      next = s->next;
      task_block& task = s->record();
      if (task.ops.load(std::memory_order_acquire) == nullptr || !reusable(task)) continue;
      destroy_result(task);
      free_solo(task);
    }
  }
  alignment = std::max(alignment, alignof(solo));
  const std::size_t offset = (sizeof(solo) + alignment - 1) / alignment * alignment;
  if (bytes > SIZE_MAX - offset) throw std::bad_alloc();
  char* const memory = static_cast<char*>(::operator new(offset + bytes, std::align_val_t(alignment)));
  solo* const s = ::new (memory + offset - sizeof(solo)) solo{nullptr, nullptr, offset, alignment};
  platform::put_first(solos_, *s, &solo::next, &solo::previous);
  ++solo_count_;
  grown_ = true;
  s->record().ops.store(nullptr, std::memory_order_relaxed);
  return memory + offset;
}

void block_store::free_solo(task_block& task) noexcept {
  solo& s = solo::of(task);
  platform::take_out(solos_, s, &solo::next, &solo::previous);
  --solo_count_;
  ::operator delete(reinterpret_cast<char*>(&task) - s.offset, std::align_val_t(s.alignment));
}

void block_store::clear_slow(bool results) noexcept {
  if (results) for_each([](task_block& task) { destroy_result(task); });
  while (solos_ != nullptr) free_solo(solos_->record());
  for (unsigned c = 0; c < class_count; ++c) {
    while (run* const r = sizes_[c].runs) {
      sizes_[c].runs = r->older;
      if (r == &first_small_ || r == &first_medium_) continue;
      if (r->huge) {
        platform::give_huge_page(r);
      } else if (r->bytes == first_run_bytes && spare_ == nullptr) {
        spare_ = r;
      } else {
        give_run(r);
      }
    }
  }
  grown_ = false;
  solo_ended_at_last_scan_ = 0;
  forget_all();
}

}  // namespace ramie::nursery_internal
