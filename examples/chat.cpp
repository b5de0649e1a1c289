// SPDX-License-Identifier: BSL-1.0
// A room where everybody hears everybody: what one sends, line by line, all others get. The first line is one's name.
// A guest that reads too slowly loses the oldest lines, and is told how many; nobody waits for it.
//
//   chat [ADDRESS]     127.0.0.1:7778 unless one is given; join it with: nc 127.0.0.1 7778
#include <cstdint>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include <ramie/broadcast.hpp>
#include <ramie/buffered.hpp>
#include <ramie/nursery.hpp>
#include <ramie/runtime.hpp>
#include <ramie/stream.hpp>
#include <ramie/tcp.hpp>

#include "serve_until_signal.hpp"

namespace {

constexpr std::size_t longest_line = 1000;

struct line {
  std::uint64_t from = 0;
  std::shared_ptr<const std::string> text;  // one for all who hear it
};
using room = ramie::broadcast<line>;

void say(room& all, std::uint64_t who, std::string text) {
  (void)all.send({who, std::make_shared<const std::string>(std::move(text) + "\n")});
}

// Writes what the others say, until the guest is gone.
void tell(ramie::broadcast_receiver<line> heard, std::uint64_t who, ramie::tcp_writer& to) {
  while (const auto next = heard.recv()) {
    if (next.lost() != 0) ramie::write_all(to, "* " + std::to_string(next.lost()) + " lines lost\n");
    if (next->from != who) ramie::write_all(to, *next->text);
  }
}

void listen_to(ramie::tcp_reader& from, room& all, std::uint64_t who, ramie::nursery& guest, ramie::tcp_writer& to) {
  ramie::buffered_reader lines(from);
  std::string name, text;
  if (!lines.read_line(name, longest_line)) return;
  auto heard = all.subscribe();
  say(all, who, "* " + name + " comes");
  ramie::write_all(to, "* welcome, " + name + "\n");  // whoever reads this has come, and hears all from now on
  guest.spawn([heard = std::move(heard), who, &to]() mutable { tell(std::move(heard), who, to); });
  try {
    while (lines.read_line(text, longest_line)) say(all, who, name + ": " + text);
  } catch (const std::system_error&) {
    // Gone, or talks without ever ending a line.
  }
  say(all, who, "* " + name + " goes");
}

// Two fibers for each guest: one reads its lines, one writes the others' to it. They end together.
void receive(ramie::tcp_stream stream, room all, std::uint64_t who) try {
  auto [reader, writer] = std::move(stream).split();
  ramie::nursery guest;
  listen_to(reader, all, who, guest, writer);
  guest.cancel();
  guest.join();
} catch (const std::system_error&) {
}

void serve(ramie::tcp_listener& listener) {
  room all(256);
  ramie::nursery guests;
  for (std::uint64_t who = 1;; ++who) {
    guests.spawn([stream = listener.accept(), all, who]() mutable { receive(std::move(stream), std::move(all), who); });
  }
}

}  // namespace

int main(int argc, char** argv) try {
  return ramie::run([&] { return serve_until_signal("chat", argc > 1 ? argv[1] : "127.0.0.1:7778", serve); });
} catch (const std::exception& e) {
  std::fprintf(stderr, "chat: %s\n", e.what());
  return 1;
}
