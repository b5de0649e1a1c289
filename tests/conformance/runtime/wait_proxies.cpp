// SPDX-License-Identifier: BSL-1.0
// Plain threads as fibers, and the end of a thread: each gives back what it has taken, however late it waits.
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include <ramie/ramie.hpp>
#include <support/child.hpp>
#include <support/test.hpp>
#include "runtime/src/task/frame.hpp"

namespace conformance_wait_proxies {

using ramie::runtime_internal::count_proxies;

// A wait that ends by itself.
void wait_once() {
  const ramie::channel<int> nothing(0);
  (void)nothing.recv_for(std::chrono::nanoseconds(1));
}

std::size_t in_use() {
  const auto all = count_proxies();
  return all.made - all.idle;
}

// How many proxies are lost when threads do this, one after the other.
template <class F>
long lost_by(F f) {
  (void)ramie::runtime_internal::self();  // this thread's own
  const auto before = in_use();
  for (int i = 0; i < 20; ++i) std::thread(f).join();
  return static_cast<long>(in_use()) - static_cast<long>(before);
}

struct waits_at_the_end {
  ~waits_at_the_end() { wait_once(); }
};

TEST_CASE("threads that wait in destructors of thread-local objects lose no proxy", "[conformance][proxy]") {
  CHECK(lost_by(wait_once) == 0);
  CHECK(lost_by([] {
          static thread_local const waits_at_the_end made_first;
          (void)&made_first;
          wait_once();
          static thread_local const waits_at_the_end made_last;
          (void)&made_last;
        }) == 0);
  CHECK(lost_by([] {
          static thread_local const waits_at_the_end and_never_before;
          (void)&and_never_before;
        }) == 0);
}

// Its destructor waits, and makes another value.
ramie::fiber_local<waits_at_the_end> other_value;
struct waits_and_makes_another {
  ~waits_and_makes_another() {
    wait_once();
    (void)other_value.get();
  }
};

// More of them, one after the other, than the system calls the destructors of thread-specific data.
struct waits_and_makes_the_next {
  void operator()(const int* left) const;
};
ramie::fiber_local<std::unique_ptr<const int, waits_and_makes_the_next>> one_of_many;
void waits_and_makes_the_next::operator()(const int* left) const {
  wait_once();
  if (*left > 0) one_of_many.get().reset(left - 1);
}

TEST_CASE("threads whose values wait when they are destroyed lose no proxy", "[conformance][proxy]") {
  static constexpr int numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
  CHECK(lost_by([] { one_of_many.get().reset(&numbers[9]); }) == 0);
  static ramie::fiber_local<waits_and_makes_another> value;
  CHECK(lost_by([] { (void)value.get(); }) == 0);
  CHECK(lost_by([] {
          static thread_local const waits_and_makes_another object;
          (void)&object;
          (void)value.get();
        }) == 0);
}

pthread_key_t late_key;

TEST_CASE("threads that wait in destructors of thread-specific data lose no proxy", "[conformance][proxy]") {
  if (test::thread_sanitized) LEFT_OUT("ThreadSanitizer itself ends with the thread-specific data");
  (void)ramie::runtime_internal::self();  // so that our key is the older one, whose destructor comes first
  static thread_local int rounds = 0;
  REQUIRE(::pthread_key_create(&late_key, [](void* data) {
            wait_once();
            if (++rounds < 3) (void)::pthread_setspecific(late_key, data);
          }) == 0);
  CHECK(lost_by([] {
          rounds = 0;
          (void)::pthread_setspecific(late_key, &late_key);
          wait_once();
        }) == 0);
  CHECK(lost_by([] {  // its first wait comes after all thread-local objects; leaks of memory are for LeakSanitizer
          rounds = 0;
          (void)::pthread_setspecific(late_key, &late_key);
        }) == 0);
  CHECK(::pthread_key_delete(late_key) == 0);
}

TEST_CASE("values of the main thread are destroyed when the program exits", "[conformance][proxy]") {
  const auto end = test::in_child([] {
    struct speaker {
      void operator()(const char* text) const { (void)!::write(STDERR_FILENO, text, 5); }
    };
    static ramie::fiber_local<std::unique_ptr<const char, speaker>> value;
    value.get().reset("gone\n");
    std::exit(0);
  });
  CHECK(end.signal == 0);
  CHECK(end.errors == "gone\n");
}

}  // namespace conformance_wait_proxies
