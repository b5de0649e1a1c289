// SPDX-License-Identifier: BSL-1.0
// The example of the README, with nothing but the public headers.
#include <ramie/ramie.hpp>

#include <cstdio>

int main() {
  return ramie::run([] {  // this is a fiber, on a stack as large as a thread's
    ramie::channel<int> numbers(16);  // 0 would be a rendezvous
    ramie::nursery n;
    n.spawn([=] {
      for (int i = 1; i <= 100; ++i) numbers.send(i);
      numbers.close();
    });
    auto sum = n.spawn([=] {
      int s = 0;
      for (int v : numbers) s += v;
      return s;
    });
    n.join();  // nothing outlives its nursery; a child's failure is rethrown here
    std::printf("%d\n", sum.get());
    return 0;
  });
}
