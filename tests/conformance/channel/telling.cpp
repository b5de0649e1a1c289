// SPDX-License-Identifier: BSL-1.0
// Everything that ends somebody else's wait on a channel. In builds with checks whoever tells a partner under a lock ends
// the program (wake.cpp, `complete`), so there is nothing more to check here than that everybody gets there.
#include <optional>
#include <string>

#include <ramie/ramie.hpp>
#include <support/fiber_group.hpp>
#include <support/findings.hpp>
#include <support/select_words.hpp>
#include <support/test.hpp>

namespace conformance_channel_telling {

using test::as_fiber;
using test::findings;
using namespace test::select_words;

// `waits` waits on a channel, `tells` ends that wait.
template <class Waits, class Tells>
void tell(findings& found, Waits waits, Tells tells) {
  nursery n;
  auto partner = n.spawn([&] { waits(); });
  ramie::yield();
  found.expect(!partner.done());
  tells();
  n.join();
}

template <class T>
void tell_every_way(findings& found, T element) {
  const channel<T> c(0), full(1), other(0);
  T mine = element, yours = element;
  const auto receives = [&] { (void)c.recv(); };
  const auto sends = [&] { (void)c.send(element); };
  full.send(element);
  for (int round = 0; round < 200; ++round) {  // after 64 the lock is granted to the worker
    tell(found, receives, [&] { c.send(element); });
    tell(found, receives, [&] { (void)c.try_send(element); });
    tell(found, sends, [&] { (void)c.recv(); });
    tell(found, sends, [&] { (void)c.try_recv(); });
    tell(found, [&] { full.send(element); }, [&] { (void)full.recv(); });  // moves up
    tell(found, receives, [&] { select(on_send(c, mine = element, whatever), on_recv(other, whatever)); });
    tell(found, sends, [&] { select(on_recv(c, whatever), on_recv(other, whatever), otherwise(whatever)); });
    tell(found, [&] { select(on_recv(other, whatever), on_recv(c, whatever)); }, sends);
    tell(found, [&] { select(on_send(other, mine = element, whatever), on_send(c, yours = element, whatever)); }, receives);
  }
}

TEST_CASE("nobody is told under a channel's lock", "[conformance][channel]") {
  as_fiber([](findings& found, auto&) {
    tell_every_way(found, 1);
    tell_every_way(found, std::string(100, 'x'));
    for (int round = 0; round < 10; ++round) {
      auto ends = ramie::make_channel<std::string>(0);
      tell(found, [&] { (void)ends.rx.recv(); }, [&] { ends.tx.close(); });
      ends = ramie::make_channel<std::string>(0);
      tell(found, [&] { (void)ends.rx.recv(); }, [&] { ends.tx.reset(); });
      ends = ramie::make_channel<std::string>(0);
      tell(found, [&] { (void)ends.tx.send("admitted"); }, [&] { ends.tx.close(); });
      ends = ramie::make_channel<std::string>(0);
      tell(found, [&] { (void)ends.tx.send("given back"); }, [&] { ends.rx.reset(); });
    }
  });
}

}  // namespace conformance_channel_telling
