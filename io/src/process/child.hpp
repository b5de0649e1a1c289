// SPDX-License-Identifier: BSL-1.0
// A child process by its pidfd.
//
// Invariants
//   PR8  The child is reaped exactly once: by the first call that finds it ended, by the destructor, or, if it is
//        detached, by the watcher's thread (PR9). No error or exception leaves a child without an owner: the destructor
//        kills and reaps a child that is neither reaped nor detached.
//   CL1  Until the child is reaped, its process id and its pidfd mean this child.
#pragma once

#include <atomic>
#include <csignal>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <ramie/process.hpp>
#include <ramie/runtime/io.hpp>

#include "../fs/system.hpp"
#include "../native.hpp"
#include "../watcher.hpp"

namespace ramie::io_internal {

using namespace runtime_internal;

class child final : private watched {
 public:
  // `id` is a child of this process that has not been reaped. It is killed and reaped if this fails or throws
  // std::bad_alloc.
  [[nodiscard]] static std::unique_ptr<child> adopt(int id, std::error_code& ec);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  [[nodiscard]] int id() const noexcept { return id_; }
  [[nodiscard]] int native_handle() const noexcept { return io_internal::native_handle(pidfd_); }
  // 0, or -errno. A cancellation point.
  [[nodiscard]] std::int32_t wait(exit_status& status, deadline until);
  // 0: it has not ended; 1: it has, and `status` says how; or -errno.
  [[nodiscard]] std::int32_t try_reap(exit_status& status) noexcept;
  [[nodiscard]] std::int32_t kill(int signal) noexcept;
  // Hands the child to reap_later(). Throws std::system_error, std::bad_alloc: then nothing has changed.
  void detach();

  // As a source of select: watched_ready_ops. Throws std::system_error, std::bad_alloc.
  void begin_watching();
  using taken = exit_status;
  // True: `status` says how it ended. Throws std::system_error: it is not ours any more.
  [[nodiscard]] bool try_take(exit_status& status);
  [[nodiscard]] bool publish(waiter& node) noexcept;
  void unpublish(waiter& node) noexcept { selects_.remove(node); }

 private:
  [[nodiscard]] then on_ready() noexcept override;
  child(int id, descriptor_ref pidfd) noexcept : id_(id), pidfd_(std::move(pidfd)) {}
  void wait_for_the_end() noexcept;
  void wait_by_this_thread() noexcept;
  [[nodiscard]] bool is_over() noexcept;

  const int id_;
  descriptor_ref pidfd_;
  std::mutex lock_;  // never held across a wait
  bool over_ = false;  // reaped, detached, or reaped by somebody else; status_: only if by us
  std::optional<exit_status> status_;
  recheck_list selects_;
  std::atomic<bool> ended_{false};  // seen by the watcher: try_reap says so too, from here on
  std::mutex watch_lock_;           // of the next field; not held where on_ready runs
  std::uint64_t watch_number_ = 0;  // 0: no select has waited for it
};

// Reaps it if it has ended. 0: not yet; 1: it is reaped, and `info` tells of its end; or -errno. WNOWAIT among the
// flags: only looks.
[[nodiscard]] std::int64_t reap(int pidfd, siginfo_t& info, int flags = 0) noexcept;

// Reaps the child of that pidfd when it ends, also after the end of every runtime. Throws std::system_error,
// std::bad_alloc.
void reap_later(unique_fd pidfd);

// 0, or the -errno with which a wait for a child by its pidfd would fail on this machine.
[[nodiscard]] std::int64_t pidfd_refused() noexcept;
[[nodiscard]] std::int64_t open_pidfd(int id) noexcept;

}  // namespace ramie::io_internal
