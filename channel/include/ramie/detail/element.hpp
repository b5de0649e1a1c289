// SPDX-License-Identifier: BSL-1.0
// An element on its way through a channel, as the core sees it, which is no template. Not part of the API.
#pragma once

#include <cstddef>
#include <cstring>
#include <functional>
#include <new>
#include <optional>
#include <type_traits>
#include <utility>

namespace ramie::channel_internal {

// How elements of one type are moved. Functions are null for types whose bytes may be copied.
struct element_ops {
  std::size_t size;
  std::size_t alignment;
  void (*store)(void* slot, void* from);       // makes a T in raw memory from the T at `from`; may throw
  void (*deliver)(void* landing, void* from);  // the same into a landing<T>
  void (*destroy)(void* slot) noexcept;
};

// Small enough that copying its bytes beats a call.
template <class T>
inline constexpr bool moves_as_bytes = std::is_trivially_copyable_v<T> && sizeof(T) <= 128;

// Where a received element arrives: raw memory for bytes, a std::optional for the rest.
template <class T, bool = moves_as_bytes<T>>
class landing {
 public:
  [[nodiscard]] void* address() noexcept { return &value_; }
  // Calls f with the element, once, after one has arrived; nothing stays behind. An element whose move may throw is not
  // moved again: it is passed where it is.
  template <class F>
  void pass_to(F& f) {
    if constexpr (std::is_nothrow_move_constructible_v<T>) {
      std::optional<T> element(std::move(value_));
      value_.reset();  // f may use this landing again
      std::invoke(f, std::move(element));
    } else {
      const emptied after{value_};
      std::invoke(f, std::move(value_));
    }
  }
  static void deliver(void* to, void* from) {
    static_cast<std::optional<T>*>(to)->emplace(std::move(*static_cast<T*>(from)));
  }

 private:
  struct emptied {
    std::optional<T>& value;
    ~emptied() { value.reset(); }
  };
  std::optional<T> value_;
};
template <class T>
class landing<T, true> {
 public:
  [[nodiscard]] void* address() noexcept { return bytes_; }
  [[nodiscard]] T&& bytes() noexcept { return std::move(*std::launder(reinterpret_cast<T*>(bytes_))); }
  template <class F>
  void pass_to(F& f) {
    std::invoke(f, std::optional<T>(bytes()));
  }

 private:
  alignas(T) std::byte bytes_[sizeof(T)];
};

// What can be carried, as far as it can be said of a type that need not be complete yet.
template <class T>
inline constexpr bool is_value = std::is_object_v<T> && !std::is_array_v<T> && std::is_same_v<T, std::remove_cv_t<T>>;

// Says why it is none.
template <class T>
struct must_be_value {
  static_assert(!std::is_void_v<T>,
                "ramie: a channel carries values, and void has none. For bare signals use std::monostate as the element, or "
                "event, or notify.");
  static_assert(!std::is_reference_v<T>,
                "ramie: a channel carries values, not references. Use T* or std::reference_wrapper<T>; what it refers to "
                "must live until it is received.");
  static_assert(std::is_void_v<T> || std::is_reference_v<T> || is_value<T>,
                "ramie: a channel carries values that can be moved: nothing const or volatile, no array, no function. Use "
                "the type without const, or std::array.");
};

template <class T>
[[nodiscard]] constexpr element_ops make_element_ops() noexcept {
  static_assert(std::is_move_constructible_v<T>,
                "ramie: a channel moves its elements, and this type can be neither moved nor copied. Send a "
                "std::unique_ptr to it.");
  static_assert(std::is_nothrow_destructible_v<T>, "ramie: the destructor of an element must not throw.");
  if constexpr (moves_as_bytes<T>) {
    return {sizeof(T), alignof(T), nullptr, nullptr, nullptr};
  } else {
    return {sizeof(T), alignof(T), [](void* slot, void* from) { ::new (slot) T(std::move(*static_cast<T*>(from))); },
            [](void* to, void* from) { landing<T>::deliver(to, from); },
            [](void* slot) noexcept { static_cast<T*>(slot)->~T(); }};
  }
}
template <class T>
inline constexpr element_ops element_ops_of = make_element_ops<T>();

}  // namespace ramie::channel_internal
