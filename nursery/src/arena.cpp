// SPDX-License-Identifier: BSL-1.0
#include <ramie/arena.hpp>

#include <algorithm>

namespace ramie::inline v0 {

namespace {
constexpr std::size_t first_chunk = 1024;
constexpr std::size_t largest_growth = 64 * 1024;
}  // namespace

struct alignas(std::max_align_t) arena::chunk {
  chunk* older;
};

// Chunks double, so that their number stays small; what would waste most of one gets its own.
void* arena::allocate_slow(std::size_t bytes, std::size_t alignment) {
  const std::size_t slack = alignment > alignof(std::max_align_t) ? alignment : 0;
  if (bytes > SIZE_MAX / 2 || slack > SIZE_MAX / 4) throw std::bad_alloc();
  const std::size_t least = sizeof(chunk) + bytes + slack;
  const std::size_t growth = std::clamp(reserved_, first_chunk, largest_growth);
  const bool of_its_own = least > growth / 2 && least > first_chunk;
  const std::size_t size = of_its_own ? least : std::max(least, growth);
  auto* const fresh = static_cast<chunk*>(::operator new(size));
  fresh->older = chunks_;
  chunks_ = fresh;
  reserved_ += size;
  auto* const begin = reinterpret_cast<std::byte*>(fresh + 1);
  const auto at = reinterpret_cast<std::uintptr_t>(begin);
  auto* const place = begin + (((at + alignment - 1) & ~(alignment - 1)) - at);
  if (!of_its_own) {
    next_ = place + bytes;
    end_ = reinterpret_cast<std::byte*>(fresh) + size;
  }
  return place;
}

void arena::clear() noexcept {
  while (nursery_internal::destructor_record* const record = youngest_) {
    youngest_ = record->older;  // a destructor may make more
    record->destroy(record->object);
  }
  while (chunk* const last = chunks_) {
    chunks_ = last->older;
    ::operator delete(last);
  }
  reserved_ = 0;
  next_ = first_.data();
  end_ = first_.data() + first_.size();
}

}  // namespace ramie::inline v0
