// SPDX-License-Identifier: BSL-1.0
// One lock protects all state; the code under it only changes pointers. Callbacks are called, fibers are completed and
// memory is allocated without it.
//
// Because callbacks are called without the lock, one may be destroyed while it runs. `calls_` is the callback that
// runs: its destructor waits until the callback has returned, unless the callback itself destroys it. Whether that is
// so is decided by the calling fiber, not by the thread: a callback may let other fibers run, here or elsewhere.
//
// Rejected: a list of std::stop_callback, which compares threads.
#include <ramie/shutdown.hpp>

#include <algorithm>
#include <mutex>
#include <thread>

#include <ramie/platform/linked_list.hpp>
#include <ramie/platform/spin_lock.hpp>
#include <ramie/runtime/budget.hpp>
#include <ramie/runtime/ready.hpp>
#include <ramie/runtime/wait.hpp>

namespace ramie::io_internal {

using namespace runtime_internal;

// Shared, so that a report can refer to it after the lock has been released.
struct work_label {
  std::string name;
  source_location where;
};

struct guarded_work {
  std::shared_ptr<const work_label> label;
  guarded_work *previous = nullptr, *next = nullptr;
};

// The fiber or plain thread that calls the callbacks.
struct shutdown_caller {
  static shutdown_caller current() noexcept {
    fiber* const self = current_context().self;
    return {self, self != nullptr ? std::thread::id() : std::this_thread::get_id()};
  }
  bool operator==(const shutdown_caller&) const noexcept = default;
  fiber* self = nullptr;
  std::thread::id thread{};
};

namespace {

const wait_reason waits_for_shutdown{"shutdown token"};
const wait_reason waits_for_work{"shutdown, pending work"};

}  // namespace

class shutdown_core {
 public:
  // Waits until a condition of the core holds. The core's lock protects `holds` and the list.
  class condition final : public waitable {
   public:
    condition(shutdown_core& of, bool (shutdown_core::*holds)() const noexcept) noexcept : core_(of), holds_(holds) {}
    bool try_complete(waiter&) override {
      std::lock_guard hold(core_.lock_);
      return (core_.*holds_)();
    }
    bool publish(waiter& node) override {
      std::lock_guard hold(core_.lock_);
      if ((core_.*holds_)()) return false;
      waiters_.add(node);
      return true;
    }
    void unpublish(waiter& node) noexcept override {
      std::lock_guard hold(core_.lock_);
      waiters_.remove(node);
    }
    // With the lock, when the condition has become true.
    void claim_all(wake_batch& wakes) noexcept { waiters_.claim_all(wakes); }

   private:
    shutdown_core& core_;
    bool (shutdown_core::*const holds_)() const noexcept;
    wait_list waiters_;
  };

  [[nodiscard]] bool requested() const noexcept { return requested_.load(std::memory_order_acquire); }
  [[nodiscard]] std::stop_token stop_token() const noexcept { return stop_.get_token(); }

  bool request() noexcept {
    {
      wake_batch wakes;
      std::unique_lock hold(lock_);
      if (requested()) return false;
      requested_.store(true, std::memory_order_release);  // pairs with the acquire in requested
      runs_ = shutdown_caller::current();
      while (hooks_ != nullptr) call_first(hold);
      asked.claim_all(wakes);
    }
    stop_.request_stop();
    return true;
  }

  void enlist(shutdown_hook& hook) noexcept {
    {
      std::lock_guard hold(lock_);
      if (!requested()) {
        platform::put_first(hooks_, hook, &shutdown_hook::next_, &shutdown_hook::previous_);
        hook.listed_ = true;
        return;
      }
    }
    hook.call();
  }

  void dismiss(shutdown_hook& hook) noexcept {
    std::unique_lock hold(lock_);
    if (hook.listed_) {
      platform::take_out(hooks_, hook, &shutdown_hook::next_, &shutdown_hook::previous_);
      hook.listed_ = false;
      return;
    }
    while (calls_ == &hook && runs_ != shutdown_caller::current()) {
      hold.unlock();
      spin_yield();
      hold.lock();
    }
  }

  // Null: refused, because of the request.
  [[nodiscard]] guarded_work* begin(std::string_view name, source_location where, bool unless_requested) {
    auto work = std::make_unique<guarded_work>();
    work->label = std::make_shared<const work_label>(work_label{std::string(name), where});
    std::lock_guard hold(lock_);
    if (unless_requested && requested()) return nullptr;
    platform::put_first(work_, *work, &guarded_work::next, &guarded_work::previous);
    ++pending_;
    return work.release();
  }

  void end(guarded_work& work) noexcept {
    wake_batch wakes;
    {
      std::lock_guard hold(lock_);
      platform::take_out(work_, work, &guarded_work::next, &guarded_work::previous);
      if (--pending_ == 0) idle.claim_all(wakes);
    }
    delete &work;
  }

  [[nodiscard]] std::size_t pending() noexcept {
    std::lock_guard hold(lock_);
    return pending_;
  }

  // The labels of all work under way, the oldest first.
  [[nodiscard]] std::vector<std::shared_ptr<const work_label>> labels() {
    std::vector<std::shared_ptr<const work_label>> all;
    for (;;) {
      all.reserve(pending());
      std::lock_guard hold(lock_);
      if (pending_ > all.capacity()) continue;  // more has begun: nothing is allocated under the lock
      for (guarded_work* w = work_; w != nullptr; w = w->next) all.push_back(w->label);
      break;
    }
    std::reverse(all.begin(), all.end());
    return all;
  }

 private:
  [[nodiscard]] bool nothing_pending() const noexcept { return pending_ == 0; }

  void call_first(std::unique_lock<platform::spin_lock>& hold) noexcept {
    shutdown_hook& hook = *hooks_;
    platform::take_out(hooks_, hook, &shutdown_hook::next_, &shutdown_hook::previous_);
    hook.listed_ = false;
    calls_ = &hook;
    hold.unlock();
    hook.call();  // may destroy the hook
    hold.lock();
    calls_ = nullptr;
  }

  platform::spin_lock lock_;
  platform::atomic<bool> requested_{false};  // written under the lock
  shutdown_hook* hooks_ = nullptr;           // the one registered last comes first
  shutdown_hook* calls_ = nullptr;           // the callback that runs,
  shutdown_caller runs_;                     // and who calls it
  guarded_work* work_ = nullptr;
  std::size_t pending_ = 0;
  std::stop_source stop_;

 public:
  condition asked{*this, &shutdown_core::requested};
  condition idle{*this, &shutdown_core::nothing_pending};
};

namespace {

std::string describe_work(const work_label& work) {
  std::string text = work.where.file_name();
  text.append(":").append(std::to_string(work.where.line()));
  return work.name.empty() ? text : work.name + " (" + text + ")";
}

// As a source of select: the core is kept alive by the token.
struct request_of {
  static shutdown_core::condition& of(const ready_source& from) noexcept {
    return static_cast<shutdown_core*>(from.what)->asked;
  }
};

bool wait_at(shutdown_core::condition& what, const wait_reason& why, deadline until) {
  call_context at = current_context();
  begin_operation(at);
  waiter node;
  return fiber_wait_until(what, node, why, until.when()) != wait_result::timed_out;
}

}  // namespace

void shutdown_hook::enlist() noexcept {
  core_->enlist(*this);
}

void shutdown_hook::dismiss() noexcept {
  core_->dismiss(*this);
}

}  // namespace ramie::io_internal

namespace ramie::inline v0 {

void work_guard::done() noexcept {
  if (work_ == nullptr) return;
  core_->end(*std::exchange(work_, nullptr));
  core_.reset();
}

bool shutdown_token::requested() const noexcept {
  return core_->requested();
}

bool shutdown_token::wait(deadline until) const {
  return io_internal::wait_at(core_->asked, io_internal::waits_for_shutdown, until);
}

runtime_internal::ready_source shutdown_token::as_ready_source() const noexcept {
  if (core_ == nullptr) return {};  // moved from: never ready
  return {&runtime_internal::ready_ops_of<io_internal::request_of>, core_.get(), nullptr, 0};
}

work_guard shutdown_token::guard(std::string_view name, source_location where) const {
  return {core_, core_->begin(name, where, false)};
}

std::optional<work_guard> shutdown_token::try_guard(std::string_view name, source_location where) const {
  io_internal::guarded_work* const work = core_->begin(name, where, true);
  if (work == nullptr) return std::nullopt;
  return work_guard(core_, work);
}

std::stop_token shutdown_token::get_stop_token() const noexcept {
  return core_->stop_token();
}

shutdown_source::shutdown_source() : core_(std::make_shared<io_internal::shutdown_core>()) {}

bool shutdown_source::request() noexcept {
  const auto core = core_;  // a callback, or a fiber that goes on, may destroy this source
  return core->request();
}

pending_report shutdown_source::wait_pending(deadline until) const {
  if (io_internal::wait_at(core_->idle, io_internal::waits_for_work, until)) return {};
  return report();
}

std::size_t shutdown_source::pending() const noexcept {
  return core_->pending();
}

pending_report shutdown_source::report() const {
  pending_report found;
  for (const auto& work : core_->labels()) found.names.push_back(io_internal::describe_work(*work));
  found.pending = found.names.size();
  return found;
}

}  // namespace ramie::inline v0
