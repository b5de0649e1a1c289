// SPDX-License-Identifier: BSL-1.0
// The example of the README, with nothing but the public headers.
#include <ramie/ramie.hpp>

#include <cstdio>

int main() {
  return ramie::run([] {  // this is a fiber, on a stack as large as a thread's
    ramie::nursery n;
    auto six = n.spawn([] { return 6; });
    auto seven = n.spawn([] { return 7; });
    n.join();  // nothing outlives its nursery; a child's failure is rethrown here
    std::printf("%d\n", six.get() * seven.get());
    return 0;
  });
}
