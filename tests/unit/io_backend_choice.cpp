// SPDX-License-Identifier: BSL-1.0
// Which mechanism is chosen, and what happens where the machine refuses one, a descriptor or memory.
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <string>
#include <system_error>

#include <ramie/platform/faults.hpp>
#include <support/allocations.hpp>
#include <support/finally.hpp>
#include <support/io_backend.hpp>
#include <support/test.hpp>

namespace unit_io_backend_choice {

using ramie::platform::fault;
using ramie::platform::io_mechanism;
using ramie::platform::make_io_backend;
using test::mechanisms;
using test::owned_fd;
using test::receive;
using test::tested_backend;
namespace faults = ramie::platform::faults;

TEST_CASE("a backend that can't be had leaves no descriptor, an operation without memory is handed out", "[unit][io]") {
  const auto open_files = [] {
    const std::filesystem::directory_iterator all("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  for (const auto which : mechanisms()) {
    INFO(to_string(which));
    std::string why_not;
    const auto before = open_files();
    rlimit whole{};
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &whole) == 0);
    const owned_fd next(::dup(0));
    // UBSan looks behind a vptr it does not know yet through a pipe, and there will be no descriptor for one.
    REQUIRE(std::system_error(EMFILE, std::system_category(), "").code().value() == EMFILE);
    int refusals = 0;
    for (rlim_t more = 0; more < 3; ++more) {  // not even the first descriptor, not the second …
      const rlimit tight{static_cast<rlim_t>(next.fd()) + 1 + more, whole.rlim_max};
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &tight) == 0);
      try {
        (void)make_io_backend(which, why_not);
      } catch (const std::system_error& e) {
        refusals += e.code().value() == EMFILE;
      }
      REQUIRE(::setrlimit(RLIMIT_NOFILE, &whole) == 0);
    }
    CHECK(refusals == (which == io_mechanism::poll ? 1 : 2));
    CHECK(open_files() == before + 1);

    tested_backend b(which);
    auto [here, there] = b.pair();
    char c = 0;
    auto come = receive(here, &c, 1);
    test::fail_allocations_from(1);
    b->submit(come);
    test::fail_allocations_from(0);
    if (which == io_mechanism::io_uring) b->cancel(come);
    b.wait_for(come);
    CHECK(come.result == (which == io_mechanism::io_uring ? -ECANCELED : -ENOMEM));
  }
}

TEST_CASE("what the machine refuses is passed over", "[unit][io]") {
  const test::finally afterwards([] {
    for (const auto each : {fault::io_uring, fault::epoll}) faults::plan_for(each, 0, 0);
  });
  std::string why_not;
  faults::plan_for(fault::io_uring, 1, faults::for_good);
  CHECK(make_io_backend(io_mechanism::automatic, why_not)->mechanism() == io_mechanism::epoll);
  CHECK(why_not.find("io_uring") != std::string::npos);
  CHECK(why_not.find("not permitted") != std::string::npos);
  CHECK_THROWS_AS(make_io_backend(io_mechanism::io_uring, why_not), std::system_error);
  faults::plan_for(fault::epoll, 1, faults::for_good);
  CHECK(make_io_backend(io_mechanism::automatic, why_not)->mechanism() == io_mechanism::poll);
  CHECK(why_not.find("epoll") != std::string::npos);
}

TEST_CASE("the choice of a mechanism can be forced, and says what it passed over", "[unit][io]") {
  std::string why_not = "old";
  const auto best = make_io_backend(io_mechanism::automatic, why_not);
  CHECK(best->mechanism() == mechanisms().front());
  CHECK(why_not.empty() == (best->mechanism() == io_mechanism::io_uring));
  ::setenv("RAMIE_IO_BACKEND", "poll", 1);
  CHECK(make_io_backend(io_mechanism::automatic, why_not)->mechanism() == io_mechanism::poll);
  CHECK(make_io_backend(io_mechanism::epoll, why_not)->mechanism() == io_mechanism::epoll);  // an option is stronger
  ::setenv("RAMIE_IO_BACKEND", "smoke signals", 1);
  CHECK_THROWS_AS(make_io_backend(io_mechanism::automatic, why_not), std::system_error);
  ::unsetenv("RAMIE_IO_BACKEND");
}

}  // namespace unit_io_backend_choice
