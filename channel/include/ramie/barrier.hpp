// SPDX-License-Identifier: BSL-1.0
// Where a fixed number of parties meet, again and again: nobody goes on before all are there.
#pragma once

#include <concepts>
#include <cstdint>

#include <ramie/detail/line.hpp>
#include <ramie/version.hpp>

namespace ramie::detail {

// All of it under the line.
struct barrier_core {
  std::uint64_t parties;
  std::uint64_t missing;  // of this generation
  std::uint64_t generation = 0;
  line waiters;
};

[[nodiscard]] bool barrier_wait(barrier_core& b);
void barrier_arrive_and_drop(barrier_core& b) noexcept;
[[nodiscard]] std::uint64_t barrier_generation(barrier_core& b) noexcept;
void barrier_destroyed(const barrier_core& b) noexcept;

}  // namespace ramie::detail

namespace ramie::inline v0 {

// What a party did before it came is seen by all after they have met. Constant-initialised. Fibers of any runtime and
// plain threads may use one. It may be destroyed once every wait has returned.
class barrier {
 public:
  // At least one.
  template <std::integral Count>  // a template, so that a model build may do without `constexpr`
  explicit constexpr barrier(Count parties) noexcept
      : core_{static_cast<std::uint64_t>(parties), static_cast<std::uint64_t>(parties), 0, {}} {}
  ~barrier() {
    if (core_.waiters.first != nullptr) [[unlikely]]
      ::ramie::detail::barrier_destroyed(core_);
  }
  barrier(const barrier&) = delete;
  barrier& operator=(const barrier&) = delete;

  // Waits for the others of this generation; the last to come begins the next one. True for exactly one of them, the
  // leader: the last, or, if somebody dropped out instead of coming, the first who waits. A cancellation point on every
  // call: throws `cancelled`, and it is as if the party had not come, so the others go on waiting for it (or for its
  // arrive_and_drop). Throws std::bad_alloc on a thread's first wait.
  bool wait() { return ::ramie::detail::barrier_wait(core_); }
  // One party less, now and in all generations to come. Never waits; not a cancellation point.
  void arrive_and_drop() noexcept { ::ramie::detail::barrier_arrive_and_drop(core_); }
  // How often they have met. A snapshot.
  [[nodiscard]] std::uint64_t generation() const noexcept { return ::ramie::detail::barrier_generation(core_); }

 private:
  mutable ::ramie::detail::barrier_core core_;
};

}  // namespace ramie::inline v0
