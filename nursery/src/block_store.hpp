// SPDX-License-Identifier: BSL-1.0
// Memory for task blocks: carved from runs by moving a pointer, reused when their task has finished and its handle is
// dropped.
//
// A block whose task has ended in place with its handle dropped is reused at once (put_back). Of all others fiber and
// handle only set their marks (task_block.hpp), and whoever allocates looks for blocks that have both. It looks when
// the run is used up and enough fibers have ended since the last look to make it worthwhile, so each allocation pays
// for a few looks at most, and a nursery that spawns for ever needs memory in proportion to its live tasks.
//
// Blocks have one of four sizes; larger or over-aligned ones come from the heap one by one ("solo") and go back there.
// The first few small blocks are part of the store; runs of middling size stay in a cache of the worker when their
// nursery ends. Used by one fiber or thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include <ramie/nursery.hpp>

namespace ramie::nursery_internal {

using namespace runtime_internal;

class block_store {
 public:
  // `small`: where the free blocks of the smallest size are kept.
  explicit block_store(record_list& small) noexcept : free_small_(small) { forget_all(); }
  ~block_store() {
    clear(false, 0);
    ::operator delete(spare_, std::align_val_t(alignof(run)));
  }
  block_store(const block_store&) = delete;
  block_store& operator=(const block_store&) = delete;

  static constexpr unsigned class_count = block_class_count;
  [[nodiscard]] static constexpr std::size_t bytes_of(unsigned size_class) noexcept {
    return smallest_block << size_class;
  }

  // Room for a task; until one is there, only `type` of the record is set, to null.
  // If some is at hand, else null.
  [[nodiscard]] void* try_allocate(unsigned size_class) noexcept {
    if (fiber_record* const at = free_of(size_class).take()) return at;  // has no ops
    return try_carve(size_class);
  }
  // The same, when no block is free.
  [[nodiscard]] void* try_carve(unsigned size_class) noexcept {
    blocks_of_size& mine = sizes_[size_class];
    if (mine.bump == mine.end) [[unlikely]]
      return nullptr;
    auto* const at = reinterpret_cast<task_block*>(mine.bump);
    if (at == nullptr) __builtin_unreachable();
    mine.bump += bytes_of(size_class);
    at->ops.store(nullptr, std::memory_order_relaxed);
    return at;
  }
  // `ended` fibers of the nursery have ended so far, roughly. Throws std::bad_alloc.
  [[nodiscard]] void* allocate(unsigned size_class, std::uint64_t ended) {
    void* const at = try_allocate(size_class);
    return at != nullptr ? at : allocate_slow(size_class, ended);
  }
  [[nodiscard]] void* allocate_solo(std::size_t bytes, std::size_t alignment, std::uint64_t ended);

  // Finished and dropped, or never used: reuse it at once. Destroys no result.
  void recycle(void* at, block_origin from) noexcept {
    auto& task = *static_cast<task_block*>(at);
    if (from.size_class == solo_class) [[unlikely]]
      return free_solo(task);
    free_of(from.size_class).put(task);
  }

  // Calls `look` with every record that holds a task.
  template <class Look>
  void for_each(Look look) {
    for (unsigned c = 0; c < class_count; ++c) for_each_of(c, look);
    for (solo* s = solos_; s != nullptr; s = s->next) {
      if (s->record().ops.load(std::memory_order_acquire) != nullptr) look(s->record());
    }
  }

  // All tasks have ended; results that are left are destroyed if `results`. Gives all memory back. `ended`: as above.
  void clear(bool results, std::uint64_t ended) noexcept {
    if (results || grown_) clear_slow(results);
    restart(ended);
  }
  [[nodiscard]] bool has_grown() const noexcept { return grown_; }
  // Like clear, but for a store that has not grown and owns no result: every block it has begins anew.
  void restart(std::uint64_t ended) noexcept {
    for (unsigned c = 0; c < class_count; ++c) restart(c, ended);
  }

 private:
  [[nodiscard]] record_list& free_of(unsigned size_class) noexcept {
    return size_class == 0 ? free_small_ : sizes_[size_class].free;
  }

  struct alignas(block_alignment) run {
    run* older = nullptr;
    std::size_t bytes = 0;  // of blocks, which follow
    bool huge = false;      // a huge page of its own
    [[nodiscard]] char* begin() noexcept { return reinterpret_cast<char*>(this + 1); }
  };
  struct blocks_of_size {
    record_list free;  // but for the smallest ones
    char* bump = nullptr;
    char* end = nullptr;
    run* runs = nullptr;  // youngest first; the last one may be part of the store
    std::uint64_t blocks = 0;
    std::uint64_t ended_at_last_scan = 0;
  };
  // Stands right before its record.
  struct solo {
    solo* previous;
    solo* next;
    std::size_t offset;  // of the record in its allocation
    std::size_t alignment;
    [[nodiscard]] task_block& record() noexcept { return *std::launder(reinterpret_cast<task_block*>(this + 1)); }
    [[nodiscard]] static solo& of(task_block& task) noexcept { return *(reinterpret_cast<solo*>(&task) - 1); }
  };

  template <std::size_t Blocks, unsigned Class>
  struct built_in : run {
    alignas(block_alignment) char storage[Blocks * (smallest_block << Class)];
  };

  // Only runs that a store keeps are left.
  void restart(unsigned size_class, std::uint64_t ended) noexcept {
    blocks_of_size& mine = sizes_[size_class];
    if (mine.runs == nullptr) return;
    free_of(size_class).clear();
    mine.bump = mine.runs->begin();
    mine.ended_at_last_scan = ended;
  }
  template <class Look>
  void for_each_of(unsigned size_class, Look look) {
    for (run* r = sizes_[size_class].runs; r != nullptr; r = r->older) {
      char* const used = r == sizes_[size_class].runs ? sizes_[size_class].bump : r->begin() + r->bytes;
      for (char* at = r->begin(); at < used; at += bytes_of(size_class)) {
        auto& task = *std::launder(reinterpret_cast<task_block*>(at));
        if (task.ops.load(std::memory_order_acquire) != nullptr) look(task);
      }
    }
  }

  [[nodiscard]] void* allocate_slow(unsigned size_class, std::uint64_t ended);
  void free_solo(task_block& task) noexcept;
  void add_run(unsigned size_class);
  [[nodiscard]] static void* take_run(std::size_t bytes);
  static void give_run(run* r) noexcept;
  void clear_slow(bool results) noexcept;
  void forget_all() noexcept;

  record_list& free_small_;
  blocks_of_size sizes_[class_count];
  solo* solos_ = nullptr;
  std::uint64_t solo_count_ = 0;
  std::uint64_t solo_ended_at_last_scan_ = 0;
  bool grown_ = false;    // something came from the heap, runs or solos
  run* spare_ = nullptr;  // a first run kept for the next nursery
  built_in<4, 0> first_small_;
  built_in<2, 1> first_medium_;
};

}  // namespace ramie::nursery_internal
