// SPDX-License-Identifier: BSL-1.0
// How io/ tells errors. A public function has two forms: one reports into an error_code and does the work, the other
// calls it and throws (or_throw).
#pragma once

#include <cstdint>
#include <filesystem>
#include <system_error>
#include <type_traits>

namespace ramie::io_internal {

[[nodiscard]] inline std::error_code error_of(std::int64_t result) noexcept {
  return result < 0 ? std::error_code(static_cast<int>(-result), std::system_category()) : std::error_code();
}

// `what` is the public function: "ramie: file::open". With a path they throw std::filesystem::filesystem_error, whose
// what() has the same form as that of every other error: "ramie: file::open: No such file or directory [/the/path]".
inline void throw_if(const std::error_code& ec, const char* what) {
  if (ec) throw std::system_error(ec, what);
}
void throw_if(const std::error_code& ec, const char* what, const std::filesystem::path& path);
void throw_if(const std::error_code& ec, const char* what, const std::filesystem::path& from,
              const std::filesystem::path& to);

// The form of a function that throws, by the one that reports into an error_code: f(ec).
template <class F, class... Paths>
std::invoke_result_t<F&, std::error_code&> or_throw(const char* what, F f, const Paths&... paths) {
  std::error_code ec;
  if constexpr (std::is_void_v<std::invoke_result_t<F&, std::error_code&>>) {
    f(ec);
    throw_if(ec, what, paths...);
  } else {
    auto result = f(ec);
    throw_if(ec, what, paths...);
    return result;
  }
}

}  // namespace ramie::io_internal
