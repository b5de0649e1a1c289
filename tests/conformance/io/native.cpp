// SPDX-License-Identifier: BSL-1.0
// Descriptors that come from elsewhere and go elsewhere: from_native, release_native, native_handle, is_open.
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <string>

#include <ramie/ramie.hpp>
#include <support/cancelling.hpp>
#include <support/each_mechanism.hpp>
#include <support/processes.hpp>

namespace conformance_native {

using ramie::file;
using test::findings;
using test::with_each_mechanism;
using test::with_each_mechanism_and_without;

// Of something open whose descriptor is its own to close afterwards.
template <class T>
void is_given_back(findings& found, T from) {
  const int number = from.native_handle();
  const auto what = test::inode_of(number);
  EXPECT(found, from.is_open(), number >= 0);
  EXPECT(found, from.release_native() == number, !from.is_open(), from.native_handle() == -1);
  EXPECT(found, from.release_native() == -1);  // none any more
  {
    T gone = std::move(from);
  }
  EXPECT(found, test::inode_of(number) == what);  // nobody has closed it
  T again = T::from_native(number);
  EXPECT(found, again.is_open(), again.native_handle() == number);
  again.close();
  EXPECT(found, !again.is_open(), again.native_handle() == -1, again.release_native() == -1);
  EXPECT(found, T().release_native() == -1, T().native_handle() == -1, !T().is_open());
}

TEST_CASE("a descriptor is taken over and given back", "[conformance][native]") {
  with_each_mechanism_and_without([](findings& found) {
    const ramie::temporary_directory home(test::in_memory());
    is_given_back(found, file::open(home.path() / "f", ramie::open_mode::write | ramie::open_mode::create));
    auto ends = ramie::make_pipe();
    is_given_back(found, std::move(ends.writer));
    is_given_back(found, std::move(ends.reader));
    auto [near, far] = ramie::unix_stream::pair();
    is_given_back(found, std::move(near));
    is_given_back(found, ramie::tcp_listener::bind(ramie::address::ipv4_loopback(0)));
    is_given_back(found, ramie::udp_socket::bind(ramie::address::ipv4_loopback(0)));
  });
}

// A read has made the runtime set O_NONBLOCK, if the mechanism wants it.
TEST_CASE("a descriptor that is given back blocks as before", "[conformance][native]") {
  with_each_mechanism_and_without([](findings& found) {
    for (const int blocks : {0, O_NONBLOCK}) {
      auto [near, far] = ramie::unix_stream::pair();
      (void)::fcntl(near.native_handle(), F_SETFL, blocks);
      std::byte one[1] = {};
      far.write_all(one);
      near.read_exactly(one);
      const int released = near.release_native();
      EXPECT(found, (::fcntl(released, F_GETFL) & O_NONBLOCK) == blocks, ::close(released) == 0);
    }
  });
}

// Its number could be another file's by the time the call goes on.
TEST_CASE("a descriptor that somebody uses is not given back", "[conformance][native]") {
  with_each_mechanism([](findings& found) {
    auto ends = ramie::make_pipe();
    std::string refused;
    const auto read = [&] {
      std::byte one;
      return ends.reader.read_some({&one, 1});
    };
    const auto meanwhile = [&] {
      try {
        (void)ends.reader.release_native();
      } catch (const ramie::usage_error& e) {
        refused = e.what();
      }
      ends.writer.write_all("x");
    };
    EXPECT(found, test::result_of_waiting(read, meanwhile) == 1);
    EXPECT(found, refused.starts_with("ramie: pipe_reader::release_native: "), ends.reader.is_open());
    EXPECT(found, ::close(ends.reader.release_native()) == 0);
  });
}

TEST_CASE("a half gives the descriptor of the connection back", "[conformance][native][net]") {
  with_each_mechanism_and_without([](findings& found) {
    for (const bool by_writer : {false, true}) {
      auto ends = ramie::unix_stream::pair();
      int number = -1;
      {
        auto halves = std::move(ends.first).split();
        number = by_writer ? halves.writer.release_native() : halves.reader.release_native();
        EXPECT(found, number >= 0, !halves.reader.is_open(), !halves.writer.is_open());
        EXPECT(found, halves.reader.release_native() == -1);
      }
      EXPECT(found, ::write(number, "abc", 3) == 3, ::close(number) == 0);  // the writer's end has shut nothing down
      EXPECT(found, ramie::read_to_end(ends.second, 100) == "abc");
    }
  });
}

TEST_CASE("what is written to a descriptor that was given back can be read", "[conformance][native]") {
  with_each_mechanism_and_without([](findings& found) {
    auto ends = ramie::make_pipe();
    const int to = ends.writer.release_native();
    EXPECT(found, ::write(to, "abc", 3) == 3, ::close(to) == 0);
    EXPECT(found, ends.reader.read_all() == "abc");
  });
}

TEST_CASE("a child has a pidfd that tells when it has ended", "[conformance][native]") {
  with_each_mechanism_and_without([](findings& found) {
    auto child = test::waiting_child().spawn();
    pollfd end{child.native_handle(), POLLIN, 0};
    EXPECT(found, end.fd >= 0, ::poll(&end, 1, 0) == 0);
    child.standard_input().close();
    EXPECT(found, ::poll(&end, 1, -1) == 1, child.wait() == test::found_its_end);
    EXPECT(found, ramie::process().native_handle() == -1);
  });
}

}  // namespace conformance_native
