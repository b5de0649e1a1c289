// SPDX-License-Identifier: BSL-1.0
#include "server.hpp"

#include <new>
#include <system_error>
#include <utility>

#include <ramie/nursery.hpp>
#include <ramie/semaphore.hpp>

namespace http {

server_report server::serve(ramie::tcp_listener& listener, const ramie::shutdown_source& stop) {
  const ramie::shutdown_token token = stop.get_token();
  const auto no_more = token.closes([&listener] { listener.close(); });
  ramie::semaphore places(limits_.connections);
  server_report report;
  ramie::nursery connections;
  while (!token.requested()) {
    places.acquire();
    ramie::tcp_stream stream;
    try {
      stream = listener.accept();
    } catch (const std::system_error&) {
      if (token.requested()) break;
      throw;
    }
    auto guard = token.try_guard("connection");
    if (!guard) break;
    connections.spawn([this, &places, token, s = std::move(stream), g = std::move(*guard)]() mutable {
      serve_one(s, token);
      s.close();
      g.done();
      places.release();
    });
  }
  report.cut_short = stop.wait_pending(ramie::deadline::after(limits_.grace)).names;
  connections.cancel("not done in time");
  connections.join();
  report.connections = connections_.load();
  report.requests = requests_.load();
  return report;
}

// One that fails ends alone: the others go on.
void server::serve_one(ramie::tcp_stream& stream, const ramie::shutdown_token& stop) {
  connections_.fetch_add(1, std::memory_order_relaxed);
  try {
    stream.set_no_delay(true);
    connection c(stream, files_, how_, stop);
    c.serve();
    requests_.fetch_add(c.requests(), std::memory_order_relaxed);
  } catch (const std::bad_alloc&) {
  } catch (const std::system_error&) {
  }
}

}  // namespace http
