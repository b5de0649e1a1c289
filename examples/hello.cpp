// SPDX-License-Identifier: BSL-1.0
// The example of the README, with nothing but the public headers.
#include <ramie/runtime.hpp>
#include <ramie/this_fiber.hpp>

int main() {
  return ramie::run([] {  // this is a fiber, on a stack as large as a thread's
    ramie::yield();       // others go first
    return 0;
  });
}
