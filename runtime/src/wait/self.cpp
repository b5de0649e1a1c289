// SPDX-License-Identifier: BSL-1.0
// Who is calling: a fiber, or a plain thread, which gets a proxy fiber for as long as it lives.
//
// Proxies are never freed: like frames, they may still be looked at by a waker with an old ticket. A
// thread that ends gives its proxy to the next one.
#include <mutex>
#include <utility>
#include <vector>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/thread.hpp>

#include "../sched/worker.hpp"

namespace ramie::detail {

// Outlives all objects with a destructor: a thread may still wait in one that is destroyed after `lease`. What it
// takes then it keeps. Not in the unnamed namespace: the threads of the explorer have one each (tests/explore).
constinit thread_local proxy_fiber* thread_proxy = nullptr;

namespace {

struct proxy_pool {
  platform::mutex mutex;
  std::vector<proxy_fiber*> idle;
};

// Leaked on purpose: threads may end after static destructors have run.
proxy_pool& proxies() {
  static auto* const pool = new proxy_pool;
  return *pool;
}

proxy_fiber* take_proxy() {
  proxy_pool& pool = proxies();
  std::lock_guard hold(pool.mutex);
  if (!pool.idle.empty()) {
    proxy_fiber* const proxy = pool.idle.back();
    pool.idle.pop_back();
    return proxy;
  }
  pool.idle.reserve(pool.idle.capacity() + 1);
  auto* const proxy = new proxy_fiber;
  proxy->word.initialise(0);
  proxy->word.init_to_runnable();
  proxy->word.runnable_to_running();
  proxy->record = &proxy->own_record;
  return proxy;
}

void give_proxy(proxy_fiber& proxy) noexcept {
  drop_extras(proxy.own_record);  // the next thread starts with none
  proxy_pool& pool = proxies();
  std::lock_guard hold(pool.mutex);
  pool.idle.push_back(&proxy);
}

struct proxy_lease {
  ~proxy_lease() {
    if (thread_proxy != nullptr) give_proxy(*std::exchange(thread_proxy, nullptr));
  }
};
thread_local proxy_lease lease;

proxy_fiber& my_proxy() {
  if (thread_proxy == nullptr) {
    thread_proxy = take_proxy();
    (void)&lease;  // from here on it is given back
  }
  return *thread_proxy;
}

}  // namespace

void no_fiber_to_wait() noexcept {
  platform::fatal(
      "a wait inside the scheduler. Callbacks of the runtime (retire, discard) must not wait, nor must the destructors "
      "of what a fiber has captured if there is no stack for it.");
}

fiber* current_fiber() noexcept {
  worker* const w = this_worker();
  return w != nullptr ? w->current.get() : nullptr;
}

fiber* known_self() noexcept {
  return this_worker() != nullptr || thread_proxy != nullptr ? &self() : nullptr;
}

fiber& self() {
  worker* const w = this_worker();
  if (w == nullptr) return my_proxy();
  fiber* const f = w->current.get();
  if (f == nullptr) no_fiber_to_wait();
  return *f;
}

}  // namespace ramie::detail
