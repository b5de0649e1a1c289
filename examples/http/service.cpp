// SPDX-License-Identifier: BSL-1.0
#include "service.hpp"

#include <new>
#include <system_error>
#include <utility>

namespace http {

server_report server::serve(ramie::tcp_listener& listener, const ramie::shutdown_source& stop) {
  const ramie::shutdown_token token = stop.get_token();
  ramie::semaphore places(limits_.connections);
  // Whoever waits for a connection, or for a place for one, waits no longer.
  const auto no_more = token.on_request([&] {
    listener.close();
    places.release();
  });
  ramie::nursery connections;
  for (places.acquire(); accept_one(listener, token, connections, places);) places.acquire();
  server_report report;
  report.cut_short = stop.wait_pending(ramie::deadline(limits_.grace)).names;
  connections.cancel("not done in time");
  connections.join();
  report.connections = connections_.load();
  report.requests = requests_.load();
  return report;
}

bool server::accept_one(ramie::tcp_listener& listener, const ramie::shutdown_token& stop, ramie::nursery& connections,
                        ramie::semaphore& places) {
  ramie::tcp_stream stream;
  try {
    stream = listener.accept();
  } catch (const std::system_error&) {
    if (stop.requested()) return false;
    throw;
  }
  try {
    auto guard = stop.try_guard("connection");
    if (!guard) return false;
    connections.spawn([this, &places, stop, s = std::move(stream), g = std::move(*guard)]() mutable {
      serve_one(s, stop);
      s.close();
      g.done();
      places.release();
    });
  } catch (const std::bad_alloc&) {
    places.release();  // this one is closed; the next may find room
  }
  return true;
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
