// SPDX-License-Identifier: BSL-1.0
// Boost.Asio's side of bench/compare: stackful coroutines by boost::asio::spawn, one a connection. No strands: a
// connection is its coroutine's alone.
#include <boost/asio.hpp>
#include <boost/asio/spawn.hpp>

#include <compare/server.hpp>

namespace {

using namespace compare;
namespace asio = boost::asio;
using asio::ip::tcp;

void rethrow(const std::exception_ptr& failure) {
  if (failure) std::rethrow_exception(failure);
}

void echo(tcp::socket peer, const asio::yield_context& yield) {
  char data[4096];
  boost::system::error_code ec;
  peer.set_option(tcp::no_delay(true), ec);
  while (!ec) {
    const std::size_t got = peer.async_read_some(asio::buffer(data), yield[ec]);
    if (!ec) asio::async_write(peer, asio::buffer(data, got), yield[ec]);
  }
}

void accept(tcp::acceptor& listener, const asio::yield_context& yield) {
  for (;;) {
    tcp::socket peer = listener.async_accept(yield);
    const auto where = peer.get_executor();
    asio::spawn(
        where, [p = std::move(peer)](const asio::yield_context& y) mutable { echo(std::move(p), y); }, rethrow);
  }
}

result serve(unsigned workers, const sizes&) {
  auto& io = *new asio::io_context(static_cast<int>(workers));
  auto& listener = *new tcp::acceptor(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  announce(listener.local_endpoint().port());
  asio::spawn(
      io, [&](const asio::yield_context& y) { accept(listener, y); }, rethrow);
  for (unsigned w = 0; w < workers; ++w) std::thread([&] { io.run(); }).detach();
  serve_until_stdin_closes();
}

}  // namespace

int main(int argc, char** argv) {
  static constexpr workload all[] = {{"echo", 2, serve}};
  return run_program(argc, argv, all);
}
