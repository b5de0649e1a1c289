// SPDX-License-Identifier: BSL-1.0
#include "frame_pool.hpp"

#include <algorithm>

namespace ramie::runtime_internal {

frame_pool::slab* frame_pool::room_for_slab() {
  if (slabs_.size() < slabs_per_page) {
    slabs_.push_back(std::make_unique<slab>());
    return slabs_.back().get();
  }
  if (slabs_in_last_page_ == slabs_per_page) {
    pages_.reserve(pages_.size() + 1);
    pages_.emplace_back(static_cast<slab*>(platform::take_huge_page()));
    slabs_in_last_page_ = 0;
  }
  return ::new (pages_.back().get() + slabs_in_last_page_++) slab;
}

void frame_pool::grow() {
  const std::size_t most = made_ + frames_per_slab;  // every frame given back alone
  if (batches_.capacity() < most) batches_.reserve(std::max(most, 2 * batches_.capacity()));
  if (announce_ != nullptr) announce_(*whom_, most);
  slab* const fresh = room_for_slab();
  for (std::uint32_t at = 0; at < frames_per_slab; at += frame_batch) {
    for (std::uint32_t i = at; i < at + frame_batch; ++i) {
      fresh->frames[i].number = ++made_;
      fresh->frames[i].set_next(i + 1 < at + frame_batch ? &fresh->frames[i + 1] : nullptr);
    }
    batches_.push_back({&fresh->frames[at], frame_batch});
  }
  pooled_ += frames_per_slab;
}

fiber* frame_pool::take_batch(std::uint32_t& count) {
  std::lock_guard hold(mutex_);
  if (batches_.empty()) grow();
  const batch last = batches_.back();
  batches_.pop_back();
  pooled_ -= last.count;
  count = last.count;
  return last.first;
}

void frame_pool::give_batch(fiber* first, std::uint32_t count) noexcept {
  std::lock_guard hold(mutex_);
  batches_.push_back({first, count});
  pooled_ += count;
}

fiber* frame_pool::take_one() {
  std::uint32_t count = 0;
  fiber* const first = take_batch(count);
  if (count > 1) give_batch(first->next(), count - 1);
  return first;
}

frame_pool::census frame_pool::count() const noexcept {
  std::lock_guard hold(mutex_);
  return {made_, pooled_};
}

void frame_cache::refill(frame_pool& pool) {
  if (fiber* const there = put_by_.get()) {
    put_by_.set(nullptr);
    first_.set(there);
    count_.set(frame_batch);
    return;
  }
  std::uint32_t count = 0;
  fiber* const first = pool.take_batch(count);
  if constexpr (platform::annotate::tells_fibers_apart) {
    for (fiber* f = first; f != nullptr; f = f->next()) platform::annotate::hand_over(f);
  }
  first_.set(first);
  count_.set(count);
}

void frame_cache::put_by(frame_pool& pool) noexcept {
  if (fiber* const there = put_by_.get()) pool.give_batch(there, frame_batch);
  put_by_.set(first_.get());
  first_.set(nullptr);
  count_.set(0);
}

void frame_cache::give_all(frame_pool& pool) noexcept {
  if (fiber* const there = put_by_.get()) pool.give_batch(there, frame_batch);
  if (fiber* const there = first_.get()) pool.give_batch(there, count_.get());
  put_by_.set(nullptr);
  first_.set(nullptr);
  count_.set(0);
}

void lendable_frames::give_all(frame_cache& cache, frame_pool& pool) noexcept {
  while (fiber* const f = first_.get()) {
    platform::annotate::take_over(f);
    first_.set(f->next());
    f->word.finish(lifecycle::done);
    cache.give(f, pool);
  }
}

}  // namespace ramie::runtime_internal
