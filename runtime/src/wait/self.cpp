// SPDX-License-Identifier: BSL-1.0
// Who is calling: a fiber, or a plain thread, which gets a proxy fiber for as long as it lives.
//
// Proxies are never freed: like frames, they may still be looked at by a waker with an old ticket. A
// thread that ends gives its proxy to the next one.
//
// Invariants
//   PX1  Every proxy ever made is in the list `made`, for the life of the process. So it is always reachable, also for
//        a leak checker while only a thread's storage points to it.
//   PX2  A proxy is in `idle` or is the `thread_proxy` of exactly one thread.
//   PX3  A thread that has a proxy has the key set, so it gives the proxy back when it ends. The system calls the
//        destructors of keys after those of all thread_local objects, and calls them again, up to
//        PTHREAD_DESTRUCTOR_ITERATIONS times, for keys that were set again by then: a thread may wait in both.
//   PX4  Values of the thread (fiber_local) are destroyed while it still has its proxy: their destructors may wait,
//        too.
//
// Rejected: giving the proxy back in the destructor of a thread_local object alone. Objects that the thread made before
// its first wait are destroyed after that one; if one of them waited, it took a proxy that nobody gave back.
#include <pthread.h>
#include <unistd.h>

#include <mutex>
#include <system_error>
#include <utility>

#include <ramie/platform/fatal.hpp>
#include <ramie/platform/thread.hpp>

#include "../sched/worker.hpp"

namespace ramie::runtime_internal {

// Not in the unnamed namespace: the threads of the explorer have one each (tests/explore).
constinit thread_local proxy_fiber* thread_proxy = nullptr;

namespace {

void give_back_proxy(void*) noexcept;

class proxy_pool {
 public:
  // Leaked on purpose: threads may end after static destructors have run. Throws std::bad_alloc, or std::system_error
  // if the process has no key left.
  static proxy_pool& only() {
    static auto* const pool = new proxy_pool;
    return *pool;
  }

  // For the calling thread, which gives it back when it ends.
  proxy_fiber* take() {
    std::lock_guard hold(mutex_);
    if (idle_ == nullptr) make_one();
    if (::pthread_setspecific(key_, idle_) != 0) throw std::bad_alloc();
    --idle_count_;
    return std::exchange(idle_, idle_->next_idle);
  }
  void give(proxy_fiber& proxy) noexcept {
    std::lock_guard hold(mutex_);
    proxy.next_idle = std::exchange(idle_, &proxy);
    ++idle_count_;
  }
  [[nodiscard]] proxy_census count() noexcept {
    std::lock_guard hold(mutex_);
    return {made_count_, idle_count_};
  }

 private:
  proxy_pool() {
    if (const int error = ::pthread_key_create(&key_, give_back_proxy)) {
      throw std::system_error(error, std::system_category(), "ramie: pthread_key_create");
    }
  }
  void make_one() {
    auto* const proxy = new proxy_fiber;
    proxy->word.init_to_runnable(0);
    proxy->word.runnable_to_running();
    proxy->record = &proxy->own_record;
    proxy->made_before = std::exchange(made_, proxy);
    ++made_count_;
    idle_ = proxy;
    ++idle_count_;
  }

  platform::mutex mutex_;
  pthread_key_t key_{};
  proxy_fiber* made_ = nullptr;
  proxy_fiber* idle_ = nullptr;
  std::size_t made_count_ = 0, idle_count_ = 0;
};

// The thread ends, or has waited again in a destructor that was called after this one.
void give_back_proxy(void*) noexcept {
  proxy_fiber* const proxy = thread_proxy;
  if (proxy == nullptr) return;
  drop_extras(proxy->own_record);  // the next thread starts with none
  thread_proxy = nullptr;
  proxy_pool::only().give(*proxy);
}

// Values of the main thread end with its thread_local objects when the program exits: its keys have no destructors
// then. Not those of other threads: to register this in a destructor of thread-specific data, which come later, leaks
// memory.
struct end_of_values {
  ~end_of_values() {
    if (thread_proxy != nullptr) drop_extras(thread_proxy->own_record);
  }
};
thread_local end_of_values values_end_here;

proxy_fiber& my_proxy() {
  if (thread_proxy == nullptr) {
    thread_proxy = proxy_pool::only().take();
    if (::gettid() == ::getpid()) (void)&values_end_here;  // from here on
  }
  return *thread_proxy;
}

}  // namespace

proxy_census count_proxies() {
  return proxy_pool::only().count();
}

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

}  // namespace ramie::runtime_internal
