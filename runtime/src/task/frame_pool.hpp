// SPDX-License-Identifier: BSL-1.0
// Frames, pooled: a cache per worker, a global pool behind it, slabs from the system behind that. Frames
// move between cache and pool in batches of frame_batch, chained so that a move is a pointer swap.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include <ramie/platform/big_memory.hpp>
#include <ramie/platform/thread.hpp>

#include "frame.hpp"

namespace ramie::runtime_internal {

class frame_pool {
 public:
  // `announce` tells `whom` how many frames there will be, before there are, and may throw std::bad_alloc.
  using announcement = void (*)(scheduler& whom, std::size_t frames);
  explicit frame_pool(scheduler* whom = nullptr, announcement announce = nullptr) noexcept
      : whom_(whom), announce_(announce) {}
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;

  // A chain of 1 to frame_batch frames and how many. Throws std::bad_alloc.
  [[nodiscard]] fiber* take_batch(std::uint32_t& count);
  void give_batch(fiber* first, std::uint32_t count) noexcept;

  // One frame, for threads without a cache.
  [[nodiscard]] fiber* take_one();

  // Frames made so far, and how many of them are in the pool (not in workers' caches).
  struct census {
    std::size_t made;
    std::size_t pooled;
  };
  [[nodiscard]] census count() const noexcept;

  // Every frame, in the order they were made, whatever its state: only for a runtime that stands still.
  template <class F>
  void for_each(F f) {
    std::lock_guard hold(mutex_);
    const auto all_of = [&f](slab& s) {
      for (fiber& each : s.frames) f(each);
    };
    for (auto& s : slabs_) all_of(*s);
    for (auto& page : pages_) {
      const auto count = &page == &pages_.back() ? slabs_in_last_page_ : slabs_per_page;
      for (std::size_t i = 0; i < count; ++i) all_of(page.get()[i]);
    }
  }

 private:
  struct batch {
    fiber* first;
    std::uint32_t count;
  };
  struct alignas(frame_bytes) slab {
    fiber frames[frames_per_slab];
  };
  struct page_release {
    void operator()(slab* first) const noexcept { platform::give_huge_page(first); }
  };
  static constexpr std::size_t slabs_per_page = platform::huge_page / sizeof(slab);

  void grow();
  [[nodiscard]] slab* room_for_slab();

  scheduler* const whom_;
  const announcement announce_;
  mutable platform::mutex mutex_;
  // A pool that has filled a huge page grows by huge pages, slab by slab. Frames need no destructor.
  std::vector<std::unique_ptr<slab>> slabs_;
  std::vector<std::unique_ptr<slab, page_release>> pages_;
  std::size_t slabs_in_last_page_ = slabs_per_page;
  std::vector<batch> batches_;  // capacity is reserved by grow, so giving back never allocates
  std::uint32_t made_ = 0;
  std::size_t pooled_ = 0;
};

// A worker's own frames. Owner only. Two chains: one in use, of up to frame_batch, and one put by, of exactly as many.
// So whole chains go to the pool and nobody has to walk one, and a worker that goes to and fro visits it rarely.
class frame_cache {
 public:
  [[nodiscard]] fiber* take(frame_pool& pool) {
    if (first_.get() == nullptr) [[unlikely]]
      refill(pool);
    return take_if_any();
  }
  // Null: only the pool has some.
  [[nodiscard]] fiber* take_if_any() noexcept {
    fiber* const f = first_.get();
    if (f == nullptr) [[unlikely]]
      return nullptr;
    platform::annotate::take_over(f);
    first_.set(f->next());
    count_.add(-1u);
    return f;
  }
  void give(fiber* f, frame_pool& pool) noexcept {
    if (count_.get() == frame_batch) [[unlikely]]
      put_by(pool);
    f->set_next(first_.get());
    platform::annotate::hand_over(f);
    first_.set(f);
    count_.add(1);
  }
  void give_all(frame_pool& pool) noexcept;
  [[nodiscard]] std::uint32_t size() const noexcept {
    return count_.get() + (put_by_.get() != nullptr ? frame_batch : 0);
  }

 private:
  void refill(frame_pool& pool);
  void put_by(frame_pool& pool) noexcept;

  platform::owned<fiber*> first_{nullptr};
  platform::owned<std::uint32_t> count_{0};
  platform::owned<fiber*> put_by_{nullptr};
};

// Frames that a worker's joins lend to the plain children they call, one child after the other (join.cpp): RUNNING
// without a fiber, and `touched` by none, so that the next child finds in them what begin_life would write. Owner only.
class lendable_frames {
 public:
  // For a child of `home`, whose owner has found clean what the fiber finds clean. Null: there is none.
  [[nodiscard]] fiber* take(cancel_scope& home, std::uint64_t seen_epoch) noexcept {
    fiber* const f = first_.get();
    if (f == nullptr) [[unlikely]]
      return nullptr;
    platform::annotate::take_over(f);
    first_.set(f->next());
    f->set_own_scope(nullptr);
    f->scope = f->home = &home;
    f->seen_epoch.set(seen_epoch);
    return f;
  }
  void give(fiber* f) noexcept {
    f->home = nullptr;  // nobody takes it for a live fiber
    f->set_next(first_.get());
    platform::annotate::hand_over(f);
    first_.set(f);
  }
  // The worker's thread ends.
  void give_all(frame_cache& cache, frame_pool& pool) noexcept;

 private:
  platform::owned<fiber*> first_{nullptr};
};

}  // namespace ramie::runtime_internal
