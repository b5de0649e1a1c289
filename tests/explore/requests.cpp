// SPDX-License-Identifier: BSL-1.0
// A fiber's wait for an operation, and a worker that sleeps where operations are done.
#include <cstddef>
#include <new>

#include <explore/memory.hpp>
#include "runtime/src/io/request.hpp"
#include "runtime/src/io/backend_sleep_flag.hpp"

#include "scenarios.hpp"
#include "waits.hpp"

namespace ramie::runtime_internal {

void fiber_wake(fiber& f, std::uint64_t ticket) noexcept {
  f.wake_by_accident(static_cast<std::uint16_t>(ticket));
}

}  // namespace ramie::runtime_internal

namespace explore {

namespace {

using namespace ramie::runtime_internal;

// The kernel completes an operation, once; its request is gone as soon as its fiber goes on, while who completed it may
// still be on its way. A fiber that is cancelled asks for the end, and waits for that all the same.
class request_scenario final : public scenario {
 public:
  explicit request_scenario(bool cancelled) : cancelled_(cancelled) {}
  threads_of threads() override {
    threads_of all{[this] { perform(); }, [this] {
                     result_ = 5;
                     request_->complete();
                   }};
    if (cancelled_) all.push_back([this] { cancellation_.strike(self_); });
    return all;
  }
  void check() override { require(seen_ == 5, "it was not waited for"); }

 private:
  void perform() {
    waiter node;
    if (!cancelled_ || !cancellation_.wait(self_, *request_, node)) self_.wait(*request_, node);
    require(request_->done(), "the wait has ended before the operation");
    seen_ = result_ + 0;
    request_->~io_request();
  }

  const bool cancelled_;
  ramie::platform::io_operation operation_;
  fiber self_;
  alignas(io_request) std::byte room_[sizeof(io_request)];
  io_request* request_ = new (room_) io_request(operation_, self_);
  cancellation cancellation_;
  plain<int> result_{0};
  plain<int> seen_{0};
};

// A backend that can only be slept in, and a parker with a token: what io_port::sleep and worker::unpark make of them.
struct model_bed {
  [[nodiscard]] bool take_token() { return token.exchange(0) != 0; }
  void wait() {
    until([this] { return woken.load() != 0; });
    woken.store(0);
  }
  void wake() { woken.store(1); }
  void give_token() { token.store(1, std::memory_order_release); }
  model_atomic<int> token{0}, woken{0};
};

// Work is published, then the worker is unparked: it does not sleep for ever.
class sleeper_scenario final : public scenario {
 public:
  threads_of threads() override {
    return {[this] {
              work_ = 1;
              bed_.give_token();
              sleeper_.wake_if_asleep([this] { bed_.wake(); });
            },
            [this] {
              bool told = false;
              while (!told) {
                sleeper_.sleep([this, &told] { return told = bed_.take_token(); }, [this] { bed_.wait(); });
                told = told || bed_.take_token();
              }
              work_ = work_ + 1;
            }};
  }
  void check() override { require(work_ == 2, "the work was not seen"); }

 private:
  model_bed bed_;
  backend_sleep_flag sleeper_;
  plain<int> work_{0};
};

}  // namespace

list request_scenarios() {
  return {
      {"io_request", with<request_scenario>(false), 5, 3, 2},
      {"io_request_cancelled", with<request_scenario>(true), 4, 2, 1},
      {"backend_sleep_flag", with<sleeper_scenario>(), 5, 3, 2},
  };
}

}  // namespace explore
