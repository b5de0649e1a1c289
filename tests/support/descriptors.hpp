// SPDX-License-Identifier: BSL-1.0
// Descriptors as the runtime sees them, below sockets, pipes and files: open_descriptor and its operations.
#pragma once

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>

#include <ramie/ramie.hpp>
#include <ramie/runtime/io.hpp>
#include <support/each_mechanism.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace test {

[[nodiscard]] inline const char* name_of(ramie::io_choice which) {
  return to_string(static_cast<ramie::platform::io_mechanism>(which));
}

// f(found) as a fiber, for every mechanism and several worker counts, with and without chaos. Leaves no descriptor.
template <class F>
void with_each_mechanism_and_chaos(F f) {
  for (const auto which : each_mechanism()) {
    for (const unsigned workers : {1u, 2u, 4u}) {
      for (const bool chaos : {false, true}) {
        auto o = with_workers(workers);
        o.io = which;
        if (chaos) o.chaos = ramie::chaos_mode{workers + 11};
        const auto before = open_descriptors();
        findings found;
        ramie::run(o, [&] { f(found); });
        INFO(name_of(which) << ", workers " << workers << ", chaos " << chaos);
        CHECK(found.wrong() == "");
        CHECK(open_descriptors() == before);
      }
    }
  }
}

using descriptor_pair = std::array<ramie::runtime_internal::descriptor_ref, 2>;

[[nodiscard]] inline descriptor_pair adopt_both(int made, const int (&ends)[2]) {
  using ramie::runtime_internal::open_descriptor;
  if (made != 0) throw std::system_error(errno, std::system_category());
  return {open_descriptor::adopt(ends[0]), open_descriptor::adopt(ends[1])};
}
// Two sockets that are connected to each other.
[[nodiscard]] inline descriptor_pair make_pair() {
  int ends[2];
  const int made = ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
  return adopt_both(made, ends);
}
// The end to read from, the end to write into.
[[nodiscard]] inline descriptor_pair make_pipe() {
  int ends[2];
  const int made = ::pipe2(ends, O_CLOEXEC);
  return adopt_both(made, ends);
}

inline const ramie::runtime_internal::wait_reason waits_in_test{"test of descriptors"};

using descriptor_time = ramie::runtime_internal::open_descriptor::time_point;
inline constexpr descriptor_time no_deadline = ramie::runtime_internal::open_descriptor::never;

inline std::int32_t transfer(const ramie::runtime_internal::descriptor_ref& on, ramie::platform::io_code code,
                             void* memory, std::size_t count, descriptor_time until = no_deadline) {
  ramie::platform::io_operation op;
  op.code = code;
  op.memory = memory;
  op.count = static_cast<std::uint32_t>(count);
  return on->perform(op, waits_in_test, until);
}
inline std::int32_t receive(const ramie::runtime_internal::descriptor_ref& from, std::span<char> into,
                            descriptor_time until = no_deadline) {
  return transfer(from, ramie::platform::io_code::receive, into.data(), into.size(), until);
}
inline std::int32_t send(const ramie::runtime_internal::descriptor_ref& to, std::string_view text) {
  return transfer(to, ramie::platform::io_code::send, const_cast<char*>(text.data()), text.size());
}

}  // namespace test
