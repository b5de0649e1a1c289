// SPDX-License-Identifier: BSL-1.0
// io_socket_st [CONNECTIONS [REQUESTS]]: a server and its clients, each in a runtime with one worker.
#include <string_view>
#include <thread>

#include <ramie/ramie.hpp>
#include "../yardstick.hpp"

namespace {

constexpr std::string_view request = "HEAD / HTTP/1.1\r\nHost: host:port\r\nConnection: close\r\n\r\n";
constexpr std::string_view response =
    "HTTP/1.1 200 OK\nContent-Length: 12\nContent-Type: text/plain; charset=utf-8\n\nHello World!";

ramie::options one_worker() {
  ramie::options o;
  o.workers = 1;
  return o;
}

// Answers until the client closes. Returns how often.
std::size_t answer(ramie::tcp_stream client) {
  std::array<std::byte, 4096> buffer;
  std::size_t count = 0;
  for (; client.read_some(buffer) != 0; ++count) client.write_all(response);
  return count;
}

void serve(ramie::tcp_listener& listener, std::size_t connections, std::size_t requests) {
  std::vector<std::size_t> served(connections);
  ramie::nursery n;
  for (std::size_t& each : served) {
    n.spawn([&each, client = listener.accept()]() mutable { each = answer(std::move(client)); });
  }
  n.join();
  std::size_t sum = 0;
  for (const std::size_t each : served) sum += each;
  yardstick::require(sum == requests, "requests served");
}

void ask(const ramie::address& where, std::size_t times) {
  auto server = ramie::tcp_stream::connect(where);
  std::array<std::byte, 4096> buffer;
  for (std::size_t i = 0; i < times; ++i) {
    server.write_all(request);
    yardstick::require(server.read_some(buffer) != 0, "an answer");
  }
}

}  // namespace

int main(int argc, char** argv) {
  const auto connections = yardstick::argument(argc, argv, 1, 20);
  const auto requests = yardstick::argument(argc, argv, 2, 100'000);
  ramie::runtime server(one_worker()), clients(one_worker());
  auto listener = server.run([] { return ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0)); });
  const auto where = listener.local_address();
  const auto start = yardstick::clock::now();
  std::thread serving([&] { server.run([&] { serve(listener, connections, requests); }); });
  clients.run([&] {
    ramie::nursery n;
    for (std::size_t i = 0; i < connections; ++i) {
      const std::size_t times = requests / connections + (i < requests % connections ? 1 : 0);
      n.spawn([&where, times] { ask(where, times); });
    }
    n.join();
  });
  serving.join();
  const long us = yardstick::microseconds_since(start);
  std::printf("connections: %zu\n", connections);
  yardstick::report(us, "iteration_count", 1, "requests", requests);
  return 0;
}
