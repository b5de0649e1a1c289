// SPDX-License-Identifier: BSL-1.0
// Cancellation as a program sees it: an exception that unwinds, a guard that defers it, two ways to ask.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <ramie/source_location.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <ramie/version.hpp>

namespace ramie::detail {
class cancel_scope;
class fiber;
}  // namespace ramie::detail

namespace ramie::inline v0 {

enum class cancel_kind : std::uint8_t { requested, deadline, sibling_failure, shutdown, deadlock };

[[nodiscard]] const char* to_string(cancel_kind kind) noexcept;

// Why a scope was cancelled and by whom.
struct cancel_reason {
  cancel_kind kind = cancel_kind::requested;
  std::string text{};
  source_location where{};
  std::uint32_t origin_fiber = 0;  // 0: a plain thread
  std::string origin_name{};       // of that fiber, if it has one
  std::exception_ptr cause{};      // sibling_failure: what the sibling threw
};

// Thrown by cancellation points of a cancelled fiber. Deliberately not a std::exception: code that
// catches errors must not swallow it by accident. A fiber that swallows it and reaches another
// cancellation point gets it again.
class cancelled {
 public:
  using scope_path = std::vector<source_location>;
  cancelled(std::shared_ptr<const cancel_reason> reason, const ::ramie::detail::cancel_scope* scope,
            std::shared_ptr<const scope_path> path = nullptr, std::exception_ptr cause = nullptr) noexcept
      : reason_(std::move(reason)), scope_(scope), path_(std::move(path)), cause_(std::move(cause)) {}

  [[nodiscard]] const cancel_reason& reason() const noexcept { return *reason_; }
  [[nodiscard]] cancel_kind kind() const noexcept { return reason_->kind; }

  // The failure behind a sibling_failure, or null. A `cancelled` that leaves the nursery it belongs to counts
  // as this failure from there on.
  [[nodiscard]] const std::exception_ptr& cause() const noexcept { return cause_; }

  // The scope that was cancelled: only that scope stops the unwinding.
  [[nodiscard]] const ::ramie::detail::cancel_scope* scope() const noexcept { return scope_; }

  // Where the scopes were opened, from the cancelled one inwards to the one the fiber was in when this was
  // thrown; at most the 32 innermost.
  [[nodiscard]] std::span<const source_location> path() const noexcept {
    return path_ != nullptr ? std::span<const source_location>(*path_) : std::span<const source_location>();
  }

  // All of it, for people.
  [[nodiscard]] std::string describe() const;

 private:
  std::shared_ptr<const cancel_reason> reason_;
  const ::ramie::detail::cancel_scope* scope_;
  std::shared_ptr<const scope_path> path_;
  std::exception_ptr cause_;  // the reason's, also when there was no memory for a reason
};

// While a shield lives, cancellation from outside it is not delivered to the fiber that made it;
// when the last one goes, it is. Scopes opened under a shield still cancel what is inside them.
// Shields nest. Bound to the block and the fiber (or plain thread) that made it.
class shield {
 public:
  explicit shield(source_location where = source_location::current());
  ~shield();
  shield(const shield&) = delete;
  shield& operator=(const shield&) = delete;

 private:
  alignas(std::max_align_t) std::byte scope_[208];
};

// Throws `cancelled` if the calling fiber has been cancelled and is not shielded. A cancellation point.
// Does nothing on a plain thread.
void check_cancelled();

// Whether check_cancelled() would throw. Not a cancellation point; never throws.
[[nodiscard]] bool stop_requested() noexcept;

}  // namespace ramie::inline v0
