// SPDX-License-Identifier: BSL-1.0
// Names that tests give to addresses: getaddrinfo asks here first (names.cpp).
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace test {

class held_calls;

// While it lives, look-ups of `name` find these addresses ("::1", "127.0.0.1"), or fail with `error`. `held` holds them
// up. One at a time for a name; any thread looks up.
class known_name {
 public:
  known_name(std::string name, std::vector<std::string> addresses, int error = 0, held_calls* held = nullptr);
  ~known_name();
  known_name(const known_name&) = delete;
  known_name& operator=(const known_name&) = delete;

 private:
  const std::string name_;
};

}  // namespace test
