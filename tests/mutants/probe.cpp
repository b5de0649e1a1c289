// SPDX-License-Identifier: BSL-1.0
// A short program through the whole runtime, with debug checks on: what a mutant of the runtime must not
// survive. Exit code 0 when everything came out right.
#include <support/crew.hpp>

int main() {
  ramie::runtime rt(test::with_workers(2));
  std::atomic<int> through{0};
  rt.run([&] {
    test::detail::gate doors[8];
    test::crew c(rt);
    for (auto& door : doors) {
      c.spawn([&] {
        test::wait_at(door);
        through.fetch_add(1);
      });
    }
    for (auto& door : doors) {
      ramie::yield();
      door.open();
    }
  });
  return through == 8 ? 0 : 1;
}
