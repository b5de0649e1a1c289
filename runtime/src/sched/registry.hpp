// SPDX-License-Identifier: BSL-1.0
// Lists every scheduler of the process, for the tests' hang report and a debugger.
#pragma once

namespace ramie::runtime_internal {

class scheduler;

// A member of its scheduler. Listed while it lives.
class registration {
 public:
  explicit registration(scheduler& whose) noexcept;
  ~registration();
  registration(const registration&) = delete;
  registration& operator=(const registration&) = delete;

 private:
  friend void visit_schedulers(void (*visit)(void*, scheduler&), void* data) noexcept;

  scheduler& whose_;
  registration* previous_ = nullptr;
  registration* next_ = nullptr;
};

// Calls visit for each, newest first, while none can be made or destroyed. Does nothing if that can't be had at once:
// the caller may have interrupted one that is just listing itself.
void visit_schedulers(void (*visit)(void*, scheduler&), void* data) noexcept;

template <class F>
void for_each_scheduler(F f) noexcept {
  visit_schedulers([](void* call, scheduler& s) { (*static_cast<F*>(call))(s); }, &f);
}

}  // namespace ramie::runtime_internal
