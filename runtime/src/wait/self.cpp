// SPDX-License-Identifier: BSL-1.0
// Who is calling: a fiber, or a plain thread, which gets a proxy fiber for as long as it lives.
//
// Proxies are never freed: like frames, they may still be looked at by a waker with an old ticket. A
// thread that ends gives its proxy to the next one.
#include <mutex>
#include <vector>

#include <ramie/platform/fatal.hpp>

#include "../sched/worker.hpp"

namespace ramie::detail {

namespace {

struct proxy_pool {
  std::mutex mutex;
  std::vector<proxy_fiber*> idle;
};

// Leaked on purpose: threads may end after static destructors have run.
proxy_pool& proxies() {
  static auto* const pool = new proxy_pool;
  return *pool;
}

struct proxy_lease {
  proxy_fiber* held = nullptr;

  proxy_fiber& get() {
    if (held == nullptr) {
      proxy_pool& pool = proxies();
      std::lock_guard hold(pool.mutex);
      if (pool.idle.empty()) {
        pool.idle.reserve(pool.idle.capacity() + 1);
        held = new proxy_fiber;
        held->word.initialise(0);
        held->word.init_to_runnable();
        held->word.runnable_to_running();
        held->record = &held->own_record;
      } else {
        held = pool.idle.back();
        pool.idle.pop_back();
      }
    }
    return *held;
  }

  ~proxy_lease() {
    if (held == nullptr) return;
    drop_extras(held->own_record);  // the next thread starts with none
    proxy_pool& pool = proxies();
    std::lock_guard hold(pool.mutex);
    pool.idle.push_back(held);
  }
};

thread_local proxy_lease lease;

}  // namespace

void no_fiber_to_wait() noexcept {
  platform::fatal("a wait inside the scheduler. Callbacks of the runtime (retire, discard) must not wait.");
}

fiber* current_fiber() noexcept {
  worker* const w = this_worker();
  return w != nullptr ? w->current.get() : nullptr;
}

fiber& self() {
  worker* const w = this_worker();
  if (w == nullptr) return lease.get();
  fiber* const f = w->current.get();
  if (f == nullptr) no_fiber_to_wait();
  return *f;
}

}  // namespace ramie::detail
