// SPDX-License-Identifier: BSL-1.0
// std::source_location, or, for compilers that don't have it yet (clang before 16), as much of it as fits
// into the same eight bytes: file and line.
#pragma once

#include <cstdint>
#include <version>

#include <ramie/version.hpp>

#if defined(__cpp_lib_source_location)

#include <source_location>

namespace ramie::inline v0 {
using std::source_location;
}

#else

namespace ramie::inline v0 {

class source_location {
 public:
  static source_location current(const char* file = __builtin_FILE(), unsigned line = __builtin_LINE()) noexcept {
    source_location here;
    here.packed_ = reinterpret_cast<std::uintptr_t>(file) | std::uint64_t{line & 0xffff} << 48;
    return here;
  }
  constexpr source_location() noexcept = default;
  [[nodiscard]] const char* file_name() const noexcept {
    const auto address = static_cast<std::uintptr_t>(packed_ & 0xffff'ffff'ffff);
    return address != 0 ? reinterpret_cast<const char*>(address) : "";
  }
  [[nodiscard]] std::uint_least32_t line() const noexcept { return static_cast<std::uint_least32_t>(packed_ >> 48); }
  [[nodiscard]] const char* function_name() const noexcept { return "(unknown function)"; }

 private:
  std::uint64_t packed_ = 0;  // user-space addresses have 48 bits where these compilers run
};

}  // namespace ramie::inline v0

#endif
