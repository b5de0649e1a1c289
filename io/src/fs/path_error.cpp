// SPDX-License-Identifier: BSL-1.0
// Errors that name a file. The standard library puts "filesystem error: " before what it was given; that is why what()
// is our own.
#include <stdexcept>
#include <string>

#include "system.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

namespace {

class path_error final : public std::filesystem::filesystem_error {
 public:
  path_error(const std::error_code& ec, const char* what, const std::filesystem::path& path)
      : filesystem_error(what, path, ec), text_(described(ec, what) + in_brackets(path)) {}
  path_error(const std::error_code& ec, const char* what, const std::filesystem::path& from,
             const std::filesystem::path& to)
      : filesystem_error(what, from, to, ec), text_(described(ec, what) + in_brackets(from) + in_brackets(to)) {}

  [[nodiscard]] const char* what() const noexcept override { return text_.what(); }

 private:
  static std::string described(const std::error_code& ec, const char* what) {
    return std::string(what) + ": " + ec.message();
  }
  static std::string in_brackets(const std::filesystem::path& path) { return " [" + path.string() + "]"; }

  std::runtime_error text_;  // a string whose copies don't throw
};

}  // namespace

void throw_if(const std::error_code& ec, const char* what, const std::filesystem::path& path) {
  if (ec) throw path_error(ec, what, path);
}
void throw_if(const std::error_code& ec, const char* what, const std::filesystem::path& from,
              const std::filesystem::path& to) {
  if (ec) throw path_error(ec, what, from, to);
}

}  // namespace ramie::io_internal
