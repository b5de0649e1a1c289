// SPDX-License-Identifier: BSL-1.0
// What the small servers here share: they listen at an address, and end on SIGINT or SIGTERM.
#pragma once

#include <csignal>
#include <cstdio>

#include <ramie/nursery.hpp>
#include <ramie/signals.hpp>
#include <ramie/tcp.hpp>

// Calls serve(listener), which goes on until it is cancelled; a signal does that. Returns what main() should.
template <class Serve>
int serve_until_signal(const char* name, const char* where, Serve serve) {
  auto listener = ramie::tcp_listener::bind(ramie::address::parse(where));
  ramie::signals end{SIGINT, SIGTERM};
  std::printf("%s at %s\n", name, listener.local_address().to_string().c_str());
  std::fflush(stdout);
  ramie::nursery n;
  n.spawn([&] { serve(listener); });
  end.wait();
  n.cancel();
  n.join();
  std::puts("done");
  return 0;
}
