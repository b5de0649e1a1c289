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

namespace ramie::inline v0 {

class arena {
 public:
  arena() noexcept = default;
  // Uses `first` before it asks the heap; it must outlive the arena.
  explicit arena(std::span<std::byte> first) noexcept
      : first_(first), next_(first.data()), end_(first.data() + first.size()) {}
  ~arena() { clear(); }
  arena(const arena&) = delete;
  arena& operator=(const arena&) = delete;

  // `alignment` is a power of two. Valid until clear(). Throws std::bad_alloc.
  [[nodiscard]] void* allocate(std::size_t bytes, std::size_t alignment = alignof(std::max_align_t)) {
    const auto at = reinterpret_cast<std::uintptr_t>(next_);
    const auto aligned = (at + alignment - 1) & ~(alignment - 1);
    const auto left = reinterpret_cast<std::uintptr_t>(end_);
    if (aligned < at || aligned > left || bytes > left - aligned) return allocate_slowly(bytes, alignment);
    next_ = reinterpret_cast<std::byte*>(aligned + bytes);
    return reinterpret_cast<void*>(aligned);
  }

  // Destroyed by clear(), the last one made first. Throws std::bad_alloc and what T's constructor throws.
  template <class T, class... Args>
  T& make(Args&&... args) {
    last_will& will = prepare();
    T* const made = ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
    adopt(will, made, [](void* object) noexcept { static_cast<T*>(object)->~T(); });
    return *made;
  }

  // The same in steps, for who must not be in here while the object is made: prepare and allocate, make it, adopt it.
  struct last_will {
    last_will* older = nullptr;
    void* object = nullptr;
    void (*destroy)(void*) noexcept = nullptr;
  };
  [[nodiscard]] last_will& prepare() { return *::new (allocate(sizeof(last_will), alignof(last_will))) last_will; }
  void adopt(last_will& will, void* object, void (*destroy)(void*) noexcept) noexcept {
    will = {youngest_, object, destroy};
    youngest_ = &will;
  }

  // Destroys every object made and gives all memory back.
  void clear() noexcept;

  // Bytes taken from the heap.
  [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }

 private:
  struct chunk;

  [[nodiscard]] void* allocate_slowly(std::size_t bytes, std::size_t alignment);

  std::span<std::byte> first_{};
  std::byte* next_ = nullptr;
  std::byte* end_ = nullptr;
  chunk* chunks_ = nullptr;
  std::size_t reserved_ = 0;
  last_will* youngest_ = nullptr;
};

}  // namespace ramie::inline v0
