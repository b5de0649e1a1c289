// SPDX-License-Identifier: BSL-1.0
// Locks that nobody contends, and what they are made of.
#include "micro.hpp"

#include <atomic>
#include <mutex>

#include <ramie/platform/biased_lock.hpp>
#include <ramie/platform/fence.hpp>
#include <ramie/platform/spin_lock.hpp>

namespace {

namespace platform = ramie::platform;

template <class Lock>
void plain(micro::Bench& bench, const char* name) {
  Lock lock;
  bench.run(name, [&] { std::lock_guard hold(lock); });
}

void biased(micro::Bench& bench) {
  platform::lock_family family;
  const platform::lock_user me{.family = &family};
  platform::biased_lock granted, shared;
  for (std::uint32_t i = 0; i <= granted.first_run; ++i) platform::biased_lock::guard hold(granted, &me);
  bench.run("biased_lock, granted", [&] { platform::biased_lock::guard hold(granted, &me); });
  bench.run("biased_lock as a spin lock", [&] { platform::biased_lock::guard hold(shared, nullptr); });
}

void floors(micro::Bench& bench) {
  std::atomic<int> word{0};
  bench.run("RMW: fetch_add", [&] { word.fetch_add(1); });
  bench.run("full_fence", [] { platform::full_fence(); });
  bench.run("light_fence", [] { platform::light_fence(); });
  bench.run("heavy_fence", [] { platform::heavy_fence(); });
}

}  // namespace

void micro::locks(Bench& bench) {
  floors(bench);
  biased(bench);
  plain<platform::spin_lock>(bench, "spin_lock");
  plain<std::mutex>(bench, "std::mutex");
}
