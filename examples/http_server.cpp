// SPDX-License-Identifier: BSL-1.0
// Serves the files of a folder by HTTP/1.1, until it is told to end (SIGINT, SIGTERM): docs/http-example.md.
//
//   http_server [--address 127.0.0.1:8080] [--workers N] [--idle MS] [--head MS] [--body MS] [--write MS] [--grace MS]
//               [--connections N] [FOLDER]
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <ramie/nursery.hpp>
#include <ramie/runtime.hpp>
#include <ramie/shutdown.hpp>
#include <ramie/signals.hpp>
#include <ramie/tcp.hpp>

#include "http/service.hpp"

namespace {

struct arguments {
  std::string address = "127.0.0.1:8080";
  const char* folder = ".";
  ramie::options runtime;
  http::settings settings;
  http::server::limits limits;
};

[[noreturn]] void explain() {
  std::fputs(
      "http_server [--address 127.0.0.1:8080] [--workers N] [--idle MS] [--head MS] [--body MS] [--write MS]\n"
      "            [--grace MS] [--connections N] [FOLDER]\n",
      stderr);
  std::exit(2);
}

int number(std::string_view text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc() || end != text.data() + text.size() || n <= 0) explain();
  return n;
}

bool take_option(arguments& a, std::string_view name, const char* value) {
  const std::pair<std::string_view, std::chrono::milliseconds*> times[] = {
      {"--idle", &a.settings.idle},   {"--head", &a.settings.head}, {"--body", &a.settings.body},
      {"--write", &a.settings.write}, {"--grace", &a.limits.grace},
  };
  for (const auto& [option, time] : times) {
    if (name != option) continue;
    *time = std::chrono::milliseconds(number(value));
    return true;
  }
  if (name == "--address") {
    a.address = value;
  } else if (name == "--workers") {
    a.runtime.workers = static_cast<unsigned>(number(value));
  } else if (name == "--connections") {
    a.limits.connections = static_cast<std::size_t>(number(value));
  } else {
    return false;
  }
  return true;
}

arguments parse(int argc, char** argv) {
  arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (!word.starts_with("--")) {
      a.folder = argv[i];
    } else if (i + 1 == argc || !take_option(a, word, argv[i + 1])) {
      explain();
    } else {
      ++i;
    }
  }
  return a;
}

int serve(const arguments& a) {
  http::site files(a.folder);
  http::server server(files, a.settings, a.limits);
  auto listener = ramie::tcp_listener::bind(ramie::address::parse(a.address));
  const ramie::shutdown_source stop;
  ramie::signals ends{SIGINT, SIGTERM};
  std::printf("serving %s at http://%s/\n", a.folder, listener.local_address().to_string().c_str());
  std::fflush(stdout);

  ramie::nursery n;
  n.spawn({.name = "signals"}, [&] {
    ends.wait();
    ramie::shutdown_source(stop).request();
  });
  const http::server_report report = server.serve(listener, stop);
  n.cancel();
  n.join();
  std::printf("served %llu requests on %llu connections; %zu were cut short\n",
              static_cast<unsigned long long>(report.requests), static_cast<unsigned long long>(report.connections),
              report.cut_short.size());
  return report.cut_short.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const arguments a = parse(argc, argv);
  try {
    return ramie::run(a.runtime, [&] { return serve(a); });
  } catch (const std::exception& e) {
    std::fprintf(stderr, "http_server: %s\n", e.what());
    return 1;
  }
}
