// SPDX-License-Identifier: BSL-1.0
#pragma once

#include <fstream>
#include <string>

#include <ramie/source_location.hpp>

namespace test {

// The line of the source file at that place, without the blanks before it; "" if the file is not there any more.
inline std::string text_at(ramie::source_location where) {
  std::ifstream file(where.file_name());
  std::string line;
  for (auto left = where.line(); left != 0 && std::getline(file, line); --left) {
  }
  if (!file) return "";
  const auto first = line.find_first_not_of(" \t");
  return first == std::string::npos ? "" : line.substr(first);
}

}  // namespace test
