// SPDX-License-Identifier: BSL-1.0
// Memory that is given back all at once: allocation moves a pointer, objects are destroyed in reverse order when
// the arena is cleared or dies. One thread or fiber at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <type_traits>
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
    if constexpr (std::is_trivially_destructible_v<T>) {
      return *::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
    } else {
      auto* const will = ::new (allocate(sizeof(last_will), alignof(last_will))) last_will;
      T* const made = ::new (allocate(sizeof(T), alignof(T))) T(std::forward<Args>(args)...);
      will->object = made;
      will->destroy = [](void* object) noexcept { static_cast<T*>(object)->~T(); };
      will->older = youngest_;
      youngest_ = will;
      return *made;
    }
  }

  // Destroys every object made and gives all memory back.
  void clear() noexcept;

  // Bytes taken from the heap.
  [[nodiscard]] std::size_t reserved() const noexcept { return reserved_; }

 private:
  struct last_will {
    last_will* older = nullptr;
    void* object = nullptr;
    void (*destroy)(void*) noexcept = nullptr;
  };
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
