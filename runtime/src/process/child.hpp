// SPDX-License-Identifier: BSL-1.0
// A child process by its pidfd.
//
// Invariants
//   P1  The child is reaped exactly once: by whoever asks first after its end, by the destructor, or, detached, by the
//       reaper. Until then its number and its pidfd mean this child.
//   P2  No child is left to itself by an error or an exception: a child object kills and reaps what nobody took over.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include <ramie/process.hpp>
#include <ramie/runtime/io.hpp>

#include "../fs/system.hpp"

namespace ramie::detail {

class child {
 public:
  // The process must be ours and not reaped; it is killed and reaped if this fails, or throws std::bad_alloc.
  [[nodiscard]] static std::unique_ptr<child> adopt(int id, std::error_code& ec);
  ~child();
  child(const child&) = delete;
  child& operator=(const child&) = delete;

  [[nodiscard]] int id() const noexcept { return id_; }
  // 0, or -errno. A cancellation point.
  [[nodiscard]] std::int32_t wait(exit_status& status, deadline until);
  // 0: not yet; 1; or -errno.
  [[nodiscard]] std::int32_t try_reap(exit_status& status) noexcept;
  [[nodiscard]] std::int32_t kill(int signal) noexcept;
  // To the reaper. Throws; it is still ours then.
  void detach();

 private:
  child(int id, descriptor_ref pidfd) noexcept : id_(id), pidfd_(std::move(pidfd)) {}
  void wait_for_the_end() noexcept;
  void wait_by_this_thread() noexcept;
  [[nodiscard]] bool is_over() noexcept;

  const int id_;
  descriptor_ref pidfd_;
  std::mutex lock_;  // never held across a wait
  bool over_ = false;
  std::optional<exit_status> status_;
};

// Reaps the child of that pidfd when it ends, whatever becomes of everybody else. Throws std::system_error.
void reap_later(unique_fd pidfd);

// 0, or the error that waiting for a child by pidfd would end in on this machine.
[[nodiscard]] std::int64_t pidfd_refused() noexcept;
[[nodiscard]] std::int64_t open_pidfd(int id) noexcept;

}  // namespace ramie::detail
