// SPDX-License-Identifier: BSL-1.0
#include <compare/ramie/ramie.hpp>

int main(int argc, char** argv) {
  using namespace compare;
  static constexpr workload all[] = {
      {"yield", 1, yields},
      {"spawn-join", 2, spawn_join},
      {"spawn-all", 1, spawn_all},
      {"fib", 2, fib},
      {"skynet-channels", 2, skynet_channels},
      {"skynet-join", 2, skynet_join},
      {"ping-pong", 2, ping_pong},
      {"channel", 2, stream},
      {"ring", 2, ring},
      {"sieve", 2, sieve},
      {"parked", 1, parked},
      {"wake", 2, wake},
      {"idle", 2, idle},
      {"sleepers", 2, sleepers},
      {"watch", 2, watch_in_turns},
      {"mutex", 2, mutex_shared},
      {"mutex-alone", 1, mutex_alone},
      {"semaphore", 1, semaphore_alone},
      {"notify", 2, notify_in_turns},
      {"once", 1, once_get},
      {"blocking", 1, blocking_call},
      {"echo", 2, echo},
      {"reads", 1, file_reads},
  };
  return run_program(argc, argv, all);
}
