// SPDX-License-Identifier: BSL-1.0
// A share of an open descriptor, for public headers: what it is stays in runtime/internal/ramie/runtime/io.hpp.
#pragma once

#include <utility>

namespace ramie::runtime_internal {

class open_descriptor;

// Shares an open_descriptor; the last one closes it. Null when default made or moved from.
class descriptor_ref {
 public:
  descriptor_ref() noexcept = default;
  descriptor_ref(const descriptor_ref& other) noexcept;
  descriptor_ref(descriptor_ref&& other) noexcept : it_(std::exchange(other.it_, nullptr)) {}
  descriptor_ref& operator=(descriptor_ref other) noexcept {
    std::swap(it_, other.it_);
    return *this;
  }
  ~descriptor_ref();

  [[nodiscard]] open_descriptor* operator->() const noexcept { return it_; }
  [[nodiscard]] open_descriptor& operator*() const noexcept { return *it_; }
  [[nodiscard]] explicit operator bool() const noexcept { return it_ != nullptr; }

 private:
  friend class open_descriptor;
  explicit descriptor_ref(open_descriptor* it) noexcept : it_(it) {}
  open_descriptor* it_ = nullptr;
};

}  // namespace ramie::runtime_internal
