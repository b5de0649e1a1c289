// SPDX-License-Identifier: BSL-1.0
// Accepts connections and serves each in a fiber of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <ramie/nursery.hpp>
#include <ramie/semaphore.hpp>
#include <ramie/shutdown.hpp>
#include <ramie/tcp.hpp>

#include "connection.hpp"
#include "site.hpp"

namespace http {

struct server_report {
  std::uint64_t connections = 0;
  std::uint64_t requests = 0;
  std::vector<std::string> cut_short;  // connections that were not done in time
};

class server {
 public:
  struct limits {
    std::size_t connections = 10'000;  // at once; others wait to be accepted
    std::chrono::milliseconds grace = std::chrono::seconds(5);
  };

  server(site& files, const settings& how, const limits& l) : files_(files), how_(how), limits_(l) {}

  // Serves what comes until `stop` is requested; then finishes what is under way, for at most the grace, and tells. A
  // cancellation point. Throws std::system_error if it can't go on accepting.
  [[nodiscard]] server_report serve(ramie::tcp_listener& listener, const ramie::shutdown_source& stop);

 private:
  // False: it is over.
  [[nodiscard]] bool accept_one(ramie::tcp_listener& listener, const ramie::shutdown_token& stop,
                                ramie::nursery& connections, ramie::semaphore& places);
  void serve_one(ramie::tcp_stream& stream, const ramie::shutdown_token& stop);

  site& files_;
  const settings& how_;
  limits limits_;
  std::atomic<std::uint64_t> connections_ = 0, requests_ = 0;
};

}  // namespace http
