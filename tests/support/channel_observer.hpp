// SPDX-License-Identifier: BSL-1.0
// Watches the channels of a test: counts the moments of channel/src/hooks.hpp, and runs something at one of them. Also the
// other parties of a test, as fibers or as threads, and what was seen in words.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

#include "channel/src/hooks.hpp"

namespace test {

using ramie::channel_status;
using ramie::channel_internal::channel_moment;

// An element that shows whether it was moved.
using element = std::unique_ptr<int>;
inline element make(int value) {
  return std::make_unique<int>(value);
}

// Lets others run until it holds, as a fiber or as a thread.
template <class Condition>
void yield_until(Condition holds) {
  while (!holds()) ramie::yield();
}

// What a test has seen, in words.
template <class T>
struct is_optional : std::false_type {};
template <class T>
struct is_optional<std::optional<T>> : std::true_type {};
template <class T>
void say(std::ostream& out, const T& what) {
  if constexpr (is_optional<T>::value) {
    what ? say(out, *what) : say(out, "nothing");
  } else if constexpr (std::is_same_v<T, element>) {
    what ? say(out, *what) : say(out, "moved");
  } else if constexpr (std::is_same_v<T, channel_status>) {
    out << to_string(what);
  } else {
    out << what;
  }
}
template <class... T>
std::string note(const T&... what) {
  std::ostringstream out;
  out << std::boolalpha;
  const char* before = "";
  ((out << before, say(out, what), before = " "), ...);
  return out.str();
}

// Counts the moments of all channels, and steps in once at one of them.
class channel_observer {
 public:
  channel_observer() {
    current = this;
    ramie::channel_internal::on_channel_moment.store(
        [](channel_moment when, ramie::channel_internal::channel_core&) { current.load()->reached(when); });
  }
  ~channel_observer() { ramie::channel_internal::on_channel_moment.store(nullptr); }
  channel_observer(const channel_observer&) = delete;
  channel_observer& operator=(const channel_observer&) = delete;

  void step_in(channel_moment when, std::function<void()> act) {
    act_ = std::move(act);
    awaited_.store(static_cast<int>(when));
  }
  [[nodiscard]] int count(channel_moment when) const { return counts_[static_cast<std::size_t>(when)].load(); }
  [[nodiscard]] int listed() const { return count(channel_moment::has_published); }
  void wait_listed(int total) const {
    yield_until([&] { return listed() >= total; });
  }

 private:
  void reached(channel_moment when) {
    counts_[static_cast<std::size_t>(when)].fetch_add(1);
    int expected = static_cast<int>(when);
    if (awaited_.compare_exchange_strong(expected, nothing_awaited)) act_();
  }
  static constexpr int nothing_awaited = -1;
  static inline std::atomic<channel_observer*> current{nullptr};
  std::array<std::atomic<int>, 5> counts_{};
  std::atomic<int> awaited_{nothing_awaited};
  std::function<void()> act_;
};

// The other parties of a test: fibers, or threads.
class others {
 public:
  explicit others(ramie::nursery* home) : home_(home) {}
  template <class F>
  void spawn(F f) {
    if (home_ != nullptr) {
      home_->spawn(std::move(f));
    } else {
      threads_.emplace_back(std::move(f));
    }
  }
  void join() {
    if (home_ != nullptr) home_->join();
    for (auto& t : threads_) t.join();
  }

 private:
  ramie::nursery* home_;
  std::vector<std::thread> threads_;
};

template <class Body>
void among_fibers(const std::string& expected, Body body) {
  for (const unsigned workers : {1u, 2u, 4u}) {
    INFO("fibers, workers: " << workers);
    CHECK(ramie::run(with_workers(workers), [&] {
            ramie::nursery n;
            others them(&n);
            return body(them);
          }) == expected);
  }
}

// Among threads without a runtime, among fibers, and a fiber among threads.
template <class Body>
void everywhere(const std::string& expected, Body body) {
  among_fibers(expected, body);
  const auto among_threads = [&] {
    others them(nullptr);
    return body(them);
  };
  INFO("threads");
  CHECK(among_threads() == expected);
  INFO("and a fiber");
  CHECK(ramie::run(with_workers(1), among_threads) == expected);
}

}  // namespace test
