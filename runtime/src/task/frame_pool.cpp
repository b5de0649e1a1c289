// SPDX-License-Identifier: BSL-1.0
#include "frame_pool.hpp"

namespace ramie::detail {

void frame_pool::grow() {
  slabs_.reserve(slabs_.size() + 1);
  batches_.reserve((slabs_.size() + 1) * frames_per_slab);
  auto fresh = std::make_unique<slab>();
  for (std::uint32_t at = 0; at < frames_per_slab; at += frame_batch) {
    for (std::uint32_t i = at; i < at + frame_batch; ++i) {
      fresh->frames[i].number = ++made_;
      fresh->frames[i].owner = owner_;
      fresh->frames[i].next.set(i + 1 < at + frame_batch ? &fresh->frames[i + 1] : nullptr);
    }
    batches_.push_back({&fresh->frames[at], frame_batch});
  }
  pooled_ += frames_per_slab;
  slabs_.push_back(std::move(fresh));
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
  if (count > 1) give_batch(first->next.get(), count - 1);
  return first;
}

frame_pool::census frame_pool::count() const noexcept {
  std::lock_guard hold(mutex_);
  return {made_, pooled_};
}

fiber* frame_cache::refill(frame_pool& pool) {
  std::uint32_t count = 0;
  fiber* const first = pool.take_batch(count);
  for (fiber* f = first; f != nullptr; f = f->next.get()) platform::annotate::hand_over(f);
  first_.set(first);
  count_.set(count);
  return first;
}

void frame_cache::spill(frame_pool& pool, std::uint32_t how_many) noexcept {
  if (how_many == 0) return;
  fiber* const head = first_.get();
  fiber* last = head;
  for (std::uint32_t i = 1; i < how_many; ++i) last = last->next.get();
  first_.set(last->next.get());
  last->next.set(nullptr);
  count_.add(-how_many);
  pool.give_batch(head, how_many);
}

}  // namespace ramie::detail
