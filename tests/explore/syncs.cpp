// SPDX-License-Identifier: BSL-1.0
// The words and queues of locks and events: mutex, shared_mutex, semaphore, notify, once; and as cases of a select.
#include <explore/memory.hpp>
#include "sync/src/mutex_core.hpp"
#include "sync/src/notify_core.hpp"
#include "sync/src/once_core.hpp"
#include "sync/src/semaphore_core.hpp"
#include "sync/src/shared_mutex_core.hpp"

#include "scenarios.hpp"
#include "waits.hpp"

namespace explore {

namespace {

using namespace ramie::runtime_internal;
using namespace ramie::sync_internal;

// Fibers that lock and unlock; one may be woken by accident while it waits, one may give up after a wake.
class mutex_scenario final : public scenario {
 public:
  mutex_scenario(int fibers, int rounds, bool disturbed) : fibers_(fibers), rounds_(rounds), disturbed_(disturbed) {}
  threads_of threads() override {
    threads_of all;
    for (int i = 0; i < fibers_; ++i) all.push_back([this, i] { use(self_[i]); });
    if (disturbed_) all.push_back([this] { self_[0].wake_by_accident(1); });
    return all;
  }
  void check() override {
    require(counted_ == fibers_ * rounds_, "a count is lost");
    require(mutex_.word.load() == 0 && mutex_.waiters.first == nullptr, "the word is not what it was");
  }

 private:
  void use(fiber& self) {
    for (int i = 0; i < rounds_; ++i) {
      lock(mutex_, self);
      require(!taken_, "two are inside");
      taken_ = true;
      step();
      counted_ = counted_ + 1;
      taken_ = false;
      mutex_word::unlock(mutex_);
    }
  }
  const int fibers_, rounds_;
  const bool disturbed_;
  mutex_core mutex_;
  fiber self_[3];
  plain<bool> taken_{false};
  plain<int> counted_{0};
};

// One waits with nothing lost so far, the others have lost it too often: the lock is handed over.
class handover_scenario final : public scenario {
 public:
  threads_of threads() override {
    return {[this] { use(0, 0); }, [this] { use(1, mutex_word::losses_before_handover); }, [this] { use(2, 0); }};
  }
  void check() override { require(counted_ == 3 && mutex_.word.load() == 0, "somebody did not get it"); }

 private:
  void use(int i, std::uint32_t losses) {
    mutex_wait on(mutex_);
    mutex_waiter node;
    node.losses = losses;
    self_[i].wait(on, node);
    while (node.outcome != 0 && !mutex_word::take_turn(mutex_, node)) self_[i].wait(on, node);
    counted_ = counted_ + 1;
    mutex_word::unlock(mutex_);
  }
  mutex_core mutex_;
  fiber self_[3];
  plain<int> counted_{0};
};

// Readers and a writer.
class shared_mutex_scenario final : public scenario {
 public:
  explicit shared_mutex_scenario(bool disturbed) : disturbed_(disturbed) {}
  threads_of threads() override {
    threads_of all{[this] { use(0, lock_kind::alone); }, [this] { use(1, lock_kind::shared); },
                   [this] { use(2, lock_kind::shared); }};
    if (disturbed_) all.push_back([this] { self_[0].wake_by_accident(1); });
    return all;
  }
  void check() override { require(written_ == 1 && mutex_.word.load() == 0, "the word is not what it was"); }

 private:
  void use(int i, lock_kind how) {
    if (!shared_mutex_word::try_lock(mutex_, how)) {
      shared_mutex_wait on(mutex_);
      shared_mutex_waiter node(how);
      self_[i].wait(on, node);
    }
    if (how == lock_kind::alone) {
      written_ = written_ + 1;
    } else {
      (void)written_.get();
    }
    shared_mutex_word::unlock(mutex_, how);
  }
  const bool disturbed_;
  shared_mutex_core mutex_;
  fiber self_[3];
  plain<int> written_{0};
};

// Fibers that want some permits each and others that release them; one may leave when it is woken by accident.
class semaphore_scenario final : public scenario {
 public:
  struct plan {
    std::uint64_t wanted[2];
    std::uint64_t released[2];
    bool first_leaves;
  };
  explicit semaphore_scenario(plan p) : plan_(p) {}
  threads_of threads() override {
    threads_of all;
    for (int i = 0; i < 2; ++i) {
      if (plan_.wanted[i] != 0) all.push_back([this, i] { acquire(i); });
      if (plan_.released[i] != 0) all.push_back([this, i] { release(i); });
    }
    if (plan_.first_leaves) all.push_back([this] { cancellation_.strike(self_[0]); });
    return all;
  }
  void check() override {
    auto left = plan_.released[0] + plan_.released[1];
    for (int i = 0; i < 2; ++i) left -= got_[i] ? plan_.wanted[i] : 0;
    require(semaphore_.word.load() == left << 1, "permits are lost or doubled");
  }

 private:
  void acquire(int i) {
    if (!semaphore_word::try_acquire(semaphore_, plan_.wanted[i])) {
      semaphore_wait on(semaphore_);
      semaphore_waiter node(plan_.wanted[i]);
      if (plan_.first_leaves && i == 0) {
        if (!cancellation_.wait(self_[i], on, node)) return;
      } else {
        self_[i].wait(on, node);
      }
    }
    got_[i] = true;
    if (plan_.released[1] == 0) (void)made_.get();
  }
  void release(int i) {
    if (plan_.released[1] == 0) made_ = 1;
    require(semaphore_word::release(semaphore_, plan_.released[i]), "too many");
  }

  const plan plan_;
  semaphore_core semaphore_{0, {}};
  cancellation cancellation_;
  fiber self_[2];
  bool got_[2] = {};
  plain<int> made_{0};
};

// Waiters and notifications.
class notify_scenario final : public scenario {
 public:
  notify_scenario(int waiters, int ones, bool disturbed) : waiters_(waiters), ones_(ones), disturbed_(disturbed) {}
  threads_of threads() override {
    threads_of all;
    for (int i = 0; i < waiters_; ++i) all.push_back([this, i] { wait(i); });
    for (int i = 0; i < ones_; ++i) {
      all.push_back([this] {
        if (ones_ == 1) made_ = 1;
        notify_word::one(notify_);
      });
    }
    if (disturbed_) all.push_back([this] { self_[0].wake_by_accident(1); });
    return all;
  }
  void check() override { require(notify_.word.load() <= notify_word::permit, "somebody is listed"); }

 private:
  void wait(int i) {
    if (!notify_word::try_take(notify_)) {
      notify_waitable on(notify_);
      queue_waiter node;
      self_[i].wait(on, node);
    }
    if (ones_ == 1) (void)made_.get();
    if (waiters_ > ones_) notify_word::one(notify_);  // for the next
  }
  const int waiters_, ones_;
  const bool disturbed_;
  notify_core notify_;
  fiber self_[3];
  plain<int> made_{0};
};

// All want it done; the first to try may fail.
class once_scenario final : public scenario {
 public:
  once_scenario(int fibers, int failures, bool disturbed)
      : fibers_(fibers), failures_(failures), disturbed_(disturbed) {}
  threads_of threads() override {
    threads_of all;
    for (int i = 0; i < fibers_; ++i) all.push_back([this, i] { want(i); });
    if (disturbed_) all.push_back([this] { self_[0].wake_by_accident(1); });
    return all;
  }
  void check() override { require(made_ == tries_ && once_.word.load() == (fibers_ > failures_ ? 4 : 0), "not done"); }

 private:
  void want(int i) {
    if (!once_.is_done() && (once_word::try_begin(once_) || wait_for_turn(i))) {
      const int mine = tries_ = tries_ + 1;
      made_ = made_ + 1;
      once_word::end(once_, mine > failures_);
      return;
    }
    require(made_ > failures_, "told that it is done");
  }
  bool wait_for_turn(int i) {
    once_wait on(once_);
    once_waiter node;
    self_[i].wait(on, node);
    return once_word::is_ours(node);
  }
  const int fibers_, failures_;
  const bool disturbed_;
  once_core once_;
  fiber self_[3];
  plain<int> tries_{0}, made_{0};
};

// A fiber that waits at two objects at once, as `selection` of channel/src/select.cpp does with its sources.
class two_cases final : public waitable {
 public:
  two_cases(waitable& first, waiter& first_node, waitable& second, waiter& second_node)
      : on_{&first, &second}, node_{&first_node, &second_node} {}
  // 0 or 1.
  [[nodiscard]] int won() const noexcept { return won_; }

  bool try_complete(waiter&) override {
    for (const bool served : {true, false}) {
      for (int i = 0; i < 2; ++i) {
        if (served && node_[i]->outcome == 0) continue;
        if (!on_[i]->try_complete(*node_[i])) continue;
        won_ = i;
        return true;
      }
    }
    return false;
  }
  bool publish(waiter& main) override {
    for (int i = 0; i < 2; ++i) {
      node_[i]->who = main.who;
      node_[i]->ticket = main.ticket;
      node_[i]->outcome = 0;
      if (on_[i]->publish(*node_[i])) continue;
      if (claim(main)) complete(*main.who);
      break;
    }
    return true;
  }
  void unpublish(waiter&) noexcept override {
    for (int i = 0; i < 2; ++i) on_[i]->unpublish(*node_[i]);
  }

 private:
  waitable* const on_[2];
  waiter* const node_[2];
  int won_ = -1;
};

struct mutex_case : mutex_word {
  [[nodiscard]] static bool try_complete(mutex_core& m, mutex_waiter& me) noexcept { return take_turn(m, me); }
};

// A fiber wants a lock or a permit, whichever comes first; another wants the lock alone. The lock is held at first, and
// `patient`: is handed over instead of only being announced. Nobody waits for ever, and what the select did not win is
// still there.
class select_lock_scenario final : public scenario {
 public:
  explicit select_lock_scenario(bool patient) : patient_(patient) { (void)mutex_word::try_lock(mutex_); }
  threads_of threads() override {
    return {[this] { choose(); }, [this] { use(self_[1]); }, [this] { mutex_word::unlock(mutex_); },
            [this] { require(semaphore_word::release(semaphore_, 1), "too many"); }};
  }
  void check() override {
    require(counted_ == (won_ == 0 ? 2 : 1), "somebody did not get the lock");
    require(mutex_.word.load() == 0 && mutex_.waiters.first == nullptr, "the lock is not free");
    require(semaphore_.word.load() == (won_ == 0 ? 2 : 0) && semaphore_.waiters.first == nullptr, "a permit is lost");
  }

 private:
  void choose() {
    case_of<mutex_case> locks(mutex_);
    case_of<semaphore_word> acquires(semaphore_);
    mutex_waiter to_lock;
    if (patient_) to_lock.losses = mutex_word::losses_before_handover;
    semaphore_waiter to_acquire(1);
    two_cases cases(locks, to_lock, acquires, to_acquire);
    waiter main;
    self_[0].wait(cases, main);
    won_ = cases.won();
    if (won_ == 0) unlock_counting();
  }
  void use(fiber& self) {
    lock(mutex_, self);
    unlock_counting();
  }
  void unlock_counting() {
    counted_ = counted_ + 1;
    mutex_word::unlock(mutex_);
  }
  const bool patient_;
  mutex_core mutex_;
  semaphore_core semaphore_{0, {}};
  fiber self_[2];
  int won_ = -1;
  plain<int> counted_{0};
};

// A fiber wants a notification or to share a lock; another waits for the notification alone, and if the select has
// taken it is notified by that.
class select_notify_scenario final : public scenario {
 public:
  select_notify_scenario() { (void)shared_mutex_word::try_lock(mutex_, lock_kind::alone); }
  threads_of threads() override {
    return {[this] { choose(); }, [this] { wait_alone(); }, [this] { notify_word::one(notify_); },
            [this] { shared_mutex_word::unlock(mutex_, lock_kind::alone); }};
  }
  void check() override {
    require(notify_.word.load() == 0 && notify_.waiters.first == nullptr, "a notification is lost or doubled");
    require(mutex_.word.load() == 0 && mutex_.waiters.first == nullptr, "the lock is not free");
  }

 private:
  void choose() {
    case_of<notify_word> is_notified(notify_);
    case_of<shared_mutex_word> shares(mutex_);
    queue_waiter to_notify;
    shared_mutex_waiter to_share(lock_kind::shared);
    two_cases cases(is_notified, to_notify, shares, to_share);
    waiter main;
    self_[0].wait(cases, main);
    if (cases.won() == 0) {
      notify_word::one(notify_);
    } else {
      shared_mutex_word::unlock(mutex_, lock_kind::shared);
    }
  }
  void wait_alone() {
    if (notify_word::try_take(notify_)) return;
    notify_waitable on(notify_);
    queue_waiter node;
    self_[1].wait(on, node);
  }
  notify_core notify_;
  shared_mutex_core mutex_;
  fiber self_[2];
};

}  // namespace

list sync_scenarios() {
  using plan = semaphore_scenario::plan;
  return {
      {"mutex_two", with<mutex_scenario>(2, 2, false), 5, 3, 1},
      {"mutex_three", with<mutex_scenario>(3, 1, false), 3, 2, 1},
      {"mutex_disturbed", with<mutex_scenario>(2, 1, true), 3, 2, 1},
      {"mutex_handed_over", with<handover_scenario>(), 3, 2, 1},
      {"shared_mutex", with<shared_mutex_scenario>(false), 3, 2, 1},
      {"shared_mutex_disturbed", with<shared_mutex_scenario>(true), 2, 1, 1},
      {"semaphore", with<semaphore_scenario>(plan{{1, 0}, {1, 0}, false}), 3, 3, 1},
      {"semaphore_in_turn", with<semaphore_scenario>(plan{{2, 1}, {2, 1}, false}), 2, 1, 1},
      {"semaphore_one_leaves", with<semaphore_scenario>(plan{{2, 1}, {1, 0}, true}), 2, 1, 1},
      {"notify_one", with<notify_scenario>(1, 1, false), 3, 3, 1},
      {"notify_chain", with<notify_scenario>(2, 1, false), 3, 2, 1},
      {"notify_disturbed", with<notify_scenario>(2, 1, true), 2, 1, 1},
      {"once", with<once_scenario>(2, 0, false), 3, 3, 1},
      {"once_failing", with<once_scenario>(3, 1, false), 3, 2, 1},
      {"once_deserted", with<once_scenario>(3, 1, true), 2, 2, 1},
      {"once_three", with<once_scenario>(3, 0, false), 3, 2, 1},
      {"once_disturbed", with<once_scenario>(2, 1, true), 3, 2, 1},
      {"select_lock", with<select_lock_scenario>(false), 2, 1, 1},
      {"select_lock_handed_over", with<select_lock_scenario>(true), 2, 1, 1},
      {"select_notify", with<select_notify_scenario>(), 2, 1, 1},
  };
}

}  // namespace explore
