// SPDX-License-Identifier: BSL-1.0
// Memory that is given back all at once: allocation moves a pointer, objects are destroyed in reverse order when
// the arena is cleared or dies. One thread or fiber at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include <ramie/version.hpp>

namespace ramie::nursery_internal {

// An object in an arena, and how to destroy it.
struct destructor_record {
  destructor_record* older = nullptr;
  void* object = nullptr;
  void (*destroy)(void*) noexcept = nullptr;
};
struct arena_access;

}  // namespace ramie::nursery_internal

namespace ramie::inline v0 {

// Any fiber or thread, one at a time: nothing here is synchronised. Nothing here waits or is a cancellation point, but
// for what the constructors and destructors of the objects do.
class arena {
 public:
  // Empty: takes no memory before the first allocation.
  arena() noexcept = default;
  // Uses `first` before it asks the heap; it must outlive the arena.
  explicit arena(std::span<std::byte> first) noexcept
      : first_(first), next_(first.data()), end_(first.data() + first.size()) {}
  // Like clear().
  ~arena() { clear(); }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  // `alignment` is a power of two. Valid until clear(). Throws std::bad_alloc.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    const auto at = reinterpret_cast<std::uintptr_t>(next_);
    const auto aligned = (at + alignment - 1) & ~(alignment - 1);
    const auto left = reinterpret_cast<std::uintptr_t>(end_);
    if (aligned < at || aligned > left || bytes > left - aligned) return allocate_slow(bytes, alignment);
    next_ = reinterpret_cast<std::byte*>(aligned + bytes);
    return reinterpret_cast<void*>(aligned);
  }

  // Destroyed by clear(), the last one made first. Throws std::bad_alloc and what T's constructor throws.
  template <class T, class... Args>
  T& make(Args&&... args) {
    ::ramie::nursery_internal::destructor_record& record = prepare();
    T* const made = ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
    adopt(record, made, [](void* object) noexcept { static_cast<T*>(object)->~T(); });
    return *made;
  }

  // Destroys every object made, the last one first, and gives all memory back; what allocate() and make() returned is
  // gone then, and the arena can be used again. Idempotent.
  void clear() noexcept;

  // Bytes taken from the heap, and not yet given back.
  [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }

 private:
  friend struct ::ramie::nursery_internal::arena_access;
  struct chunk;

  // make() in steps, for who must not be in here while the object is made: prepare and allocate, make it, adopt it.
  [[nodiscard]] ::ramie::nursery_internal::destructor_record& prepare() {
    using record_type = ::ramie::nursery_internal::destructor_record;
    return *::new (allocate(sizeof(record_type), alignof(record_type))) record_type;
  }
  void adopt(::ramie::nursery_internal::destructor_record& record, void* object,
             void (*destroy)(void*) noexcept) noexcept {
    record = {youngest_, object, destroy};
    youngest_ = &record;
  }

  [[nodiscard]] void* allocate_slow(std::size_t bytes, std::size_t alignment);

  std::span<std::byte> first_{};
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  chunk* chunks_ = nullptr;
  std::size_t reserved_ = 0;
  ::ramie::nursery_internal::destructor_record* youngest_ = nullptr;
};

}  // namespace ramie::inline v0
