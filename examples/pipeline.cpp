// SPDX-License-Identifier: BSL-1.0
// Runs a pipeline of processes, as a shell does, and tells how much went through each pipe.
//
//   pipeline seq 100000 , grep 7 , wc -l
//
// Between two processes a fiber carries the bytes and counts them. A process that ends early (head, say) closes its
// input: the fiber before it finds a broken pipe and closes the output of the process before that, which ends it, too.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include <ramie/nursery.hpp>
#include <ramie/process.hpp>
#include <ramie/runtime.hpp>
#include <ramie/stream.hpp>

namespace {

using command = std::vector<std::string>;

std::vector<command> split(int argc, char** argv) {
  std::vector<command> all(1);
  for (int i = 1; i < argc; ++i) {
    if (std::strcmp(argv[i], ",") == 0) {
      all.emplace_back();
    } else {
      all.back().push_back(argv[i]);
    }
  }
  return all;
}

ramie::process start(const command& c, bool first, bool last) {
  ramie::process_builder b(c.front());
  b.args(command(c.begin() + 1, c.end()));
  b.standard_input(first ? ramie::stdio::inherit() : ramie::stdio::pipe());
  b.standard_output(last ? ramie::stdio::inherit() : ramie::stdio::pipe());
  return b.spawn();
}

// From one process to the next, until one of them has had enough.
std::uint64_t carry(ramie::process& from, ramie::process& to) {
  std::error_code ec;
  const std::uint64_t bytes = ramie::copy(from.standard_output(), to.standard_input(), {.buffer_size = 64 * 1024}, ec);
  from.standard_output().close();
  to.standard_input().close();
  if (ec && ec != std::errc::broken_pipe) throw std::system_error(ec, "pipeline");
  return bytes;
}

int run(const std::vector<command>& commands) {
  std::vector<ramie::process> all;
  for (std::size_t i = 0; i < commands.size(); ++i) {
    all.push_back(start(commands[i], i == 0, i + 1 == commands.size()));
  }
  std::vector<std::uint64_t> carried(all.size());
  ramie::nursery n;
  for (std::size_t i = 0; i + 1 < all.size(); ++i) {
    n.spawn([&, i] { carried[i] = carry(all[i], all[i + 1]); });
  }
  n.join();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const ramie::exit_status status = all[i].wait();
    std::fprintf(stderr, "%-12s %12llu bytes out, %s\n", commands[i].front().c_str(),
                 static_cast<unsigned long long>(carried[i]), to_string(status).c_str());
  }
  const ramie::exit_status last = all.back().wait();
  return last.code().value_or(128 + last.signal().value_or(0));
}

}  // namespace

int main(int argc, char** argv) try {
  const std::vector<command> commands = split(argc, argv);
  for (const command& c : commands) {
    if (!c.empty()) continue;
    std::fputs("pipeline PROGRAM [ARGUMENT …] [, PROGRAM [ARGUMENT …]] …\n", stderr);
    return 2;
  }
  return ramie::run([&] { return run(commands); });
} catch (const std::exception& e) {
  std::fprintf(stderr, "pipeline: %s\n", e.what());
  return 127;
}
