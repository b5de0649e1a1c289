// SPDX-License-Identifier: BSL-1.0
// Where a fixed number of parties meet, again and again: nobody goes on before all are there.
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <utility>

#include <ramie/deadline.hpp>
#include <ramie/detail/wait_queue.hpp>
#include <ramie/version.hpp>

namespace ramie::inline v0 {

// How a wait at a barrier has ended.
enum class barrier_status : std::uint8_t {
  timed_out,  // it is as if the party had not come
  passed,
  leads,  // passed, and it is the one leader of its generation
};

}  // namespace ramie::inline v0

namespace ramie::sync_internal {

using namespace runtime_internal;

// All of it is under the lock of the queue.
struct barrier_core {
  static constexpr const char* name = "barrier";
  std::uint64_t parties;
  std::uint64_t missing;  // of this generation
  std::uint64_t generation = 0;
  mutable wait_queue waiters;

  [[nodiscard]] const char* in_use() const noexcept { return waiters.first != nullptr ? "others wait for" : nullptr; }
};

[[nodiscard]] barrier_status barrier_wait(barrier_core& b, sync_time until);
void barrier_arrive_and_drop(barrier_core& b);
[[nodiscard]] std::uint64_t barrier_generation(const barrier_core& b) noexcept;

template <std::integral Count>
[[nodiscard]] constexpr std::uint64_t checked_parties(Count parties) {
  return checked_count(signed_count(parties), 1, "barrier::barrier", "Give at least one party.");
}

}  // namespace ramie::sync_internal

namespace ramie::inline v0 {

// What a party did before it came is seen by all after they have met. Constant-initialised. Fibers of any runtime and
// plain threads may use one. It may be destroyed once every wait has returned.
class barrier : ::ramie::sync_internal::sync_object<::ramie::sync_internal::barrier_core> {
 public:
  // For that many parties, at least one: anything else is a usage_error.
  template <std::integral Count>  // a template, so that a model build may do without `constexpr`
  explicit constexpr barrier(Count parties)
      : sync_object(std::in_place, ::ramie::sync_internal::checked_parties(parties),
                    ::ramie::sync_internal::checked_parties(parties), std::uint64_t{0}) {}

  // Waits for the others of this generation; the last to come begins the next one. True for exactly one of them, the
  // leader: the last, or, if somebody dropped out instead of coming, the first who waits. Any fiber or thread. A
  // cancellation point on every call: throws `cancelled`, and it is as if the party had not come, so the others go on
  // waiting for it (or for its arrive_and_drop). Throws std::bad_alloc on a thread's first wait, usage_error if all
  // have dropped out.
  bool wait() { return wait_until({}) == barrier_status::leads; }
  // The same, no longer than that. A cancellation point. Also throws std::bad_alloc or std::system_error if the
  // deadline can't be kept.
  [[nodiscard]] barrier_status wait_until(deadline until) {
    return ::ramie::sync_internal::barrier_wait(core_, until.when());
  }
  template <class Rep, class Period>
  [[nodiscard]] barrier_status wait_for(std::chrono::duration<Rep, Period> limit) {
    return wait_until(limit);
  }
  // One party less, now and in all generations to come. Any fiber or thread. Never waits; not a cancellation point.
  // Throws usage_error if all have dropped out.
  void arrive_and_drop() { ::ramie::sync_internal::barrier_arrive_and_drop(core_); }
  // How often they have met. A snapshot. Any fiber or thread; not a cancellation point.
  [[nodiscard]] std::uint64_t generation() const noexcept { return ::ramie::sync_internal::barrier_generation(core_); }
};

}  // namespace ramie::inline v0
