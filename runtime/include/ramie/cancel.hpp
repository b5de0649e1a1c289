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

namespace ramie::runtime_internal {
class cancel_scope;
class carried_failure;
class fiber;
}  // namespace ramie::runtime_internal

namespace ramie::inline v0 {

// What kind of reason a cancellation has.
enum class cancel_kind : std::uint8_t {
  requested,        // nursery::cancel, task::cancel, a stop token; or a nursery that ended without a join
  deadline,         // its time had come: with_timeout, with_deadline, nursery::cancel_at
  sibling_failure,  // another child of the nursery failed
  shutdown,         // the runtime or the nursery is shut down
  deadlock,         // nothing could ever end the wait: testing::explore
};

// In words, for messages: "requested", "sibling failure" ….
[[nodiscard]] const char* to_string(cancel_kind kind) noexcept;

// Who cancelled. Unknown: a clock, the runtime itself, or there was no memory to say it.
enum class cancel_origin : std::uint8_t { unknown, fiber, thread };

// Why a scope was cancelled and by whom.
struct cancel_reason {
  cancel_kind kind = cancel_kind::requested;
  std::string text{};
  source_location where{};
  std::uint32_t origin_fiber = 0;  // the number of that fiber, if it was one
  std::string origin_name{};       // of that fiber, if it has one
  cancel_origin origin = cancel_origin::unknown;
};

// Thrown by cancellation points of a cancelled fiber. Deliberately not a std::exception: code that
// catches errors must not swallow it by accident. A fiber that swallows it and reaches another
// cancellation point gets it again.
//
// It is the end of a cancelled fiber only while it is inside the scope that was cancelled. Where it comes from another
// scope, or has left its own, it is a failure like any other: the one behind it, if there is one (cause()), else
// itself.
class cancelled {
 public:
  // What path() shows.
  using scope_path = std::vector<source_location>;

  // Why it was cancelled and by whom, and the kind alone. Valid while this object, or a copy of it, lives. No function
  // of a `cancelled` waits or is a cancellation point.
  [[nodiscard]] const cancel_reason& reason() const noexcept { return *reason_; }
  [[nodiscard]] cancel_kind kind() const noexcept { return reason_->kind; }

  // The failure behind a sibling_failure, or null. The owner of a nursery who asks the `cancelled` that was thrown at
  // it has received that failure; if nobody ever asks, it is reported (report.hpp).
  [[nodiscard]] const std::exception_ptr& cause() const noexcept;

  // Which cancellation this is of: the same number in all that are thrown because of it, and in no others in this
  // process. Only the scope that was cancelled then stops the unwinding (nursery::owns).
  [[nodiscard]] std::uint64_t number() const noexcept { return number_; }

  // Whether it has to go on: the calling fiber is inside the scope that was cancelled, and no shield in between. Else
  // it says that somebody else was cancelled, as from task::get(). False on a plain thread.
  [[nodiscard]] bool is_own() const noexcept;

  // Where the scopes were opened, from the cancelled one inwards to the one the fiber was in when this was
  // thrown; at most the 32 innermost.
  [[nodiscard]] std::span<const source_location> path() const noexcept {
    return path_ != nullptr ? std::span<const source_location>(*path_) : std::span<const source_location>();
  }

  // All of it, for people. Counts as asking for the cause. Throws std::bad_alloc.
  [[nodiscard]] std::string describe() const;

 private:
  friend class ::ramie::runtime_internal::cancel_scope;
  cancelled(std::shared_ptr<const cancel_reason> reason, std::uint64_t number, std::exception_ptr cause) noexcept
      : reason_(std::move(reason)), number_(number), cause_(std::move(cause)) {}

  std::shared_ptr<const cancel_reason> reason_;
  std::uint64_t number_;
  std::shared_ptr<const scope_path> path_;  // null: no memory for it
  std::exception_ptr cause_;                // also when there was no memory for a reason
  // Only in what was thrown at the owner of a nursery: the cause, and whether it was received.
  std::shared_ptr<::ramie::runtime_internal::carried_failure> carried_;
};

// While a shield lives, cancellation from outside it is not delivered to the fiber that made it;
// when the last one goes, it is. Scopes opened under a shield still cancel what is inside them.
// Shields nest. Bound to the block and the fiber (or plain thread) that made it.
class shield {
 public:
  // Not a cancellation point, nor is the destructor: what that lets through comes with the next cancellation point.
  // Throws nothing in a fiber; std::bad_alloc on a plain thread that has not waited before.
  explicit shield(source_location where = source_location::current());
  ~shield();
  shield(const shield&) = delete;
  shield& operator=(const shield&) = delete;

 private:
  alignas(std::max_align_t) std::byte scope_[240];
};

// Throws `cancelled` if the calling fiber has been cancelled and is not shielded. A cancellation point.
// Does nothing on a plain thread.
void check_cancelled();

// Whether check_cancelled() would throw. Not a cancellation point; never throws.
[[nodiscard]] bool stop_requested() noexcept;

}  // namespace ramie::inline v0
