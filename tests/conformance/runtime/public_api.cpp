// SPDX-License-Identifier: BSL-1.0
// What does not compile: durations where a point in time is meant, internals from outside; and what callables return.
#include <chrono>
#include <concepts>
#include <exception>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>

#include <ramie/ramie.hpp>
#include <support/findings.hpp>
#include <support/test.hpp>

namespace conformance_public_api {

using namespace std::chrono_literals;
using std::chrono::steady_clock;

template <class When>
concept is_timeout = requires(When when, ramie::nursery& n) {
  ramie::with_timeout(when, [] {});
  n.cancel_after(when);
};
template <class When>
concept is_time = requires(When when, ramie::nursery& n) {
  ramie::with_deadline(when, [] {});
  n.cancel_at(when);
  ramie::sleep_until(when);
  ramie::on_timeout(when, [] {});
};
template <class T>
concept shows_source = requires(const T& t) {
  t.as_ready_source();
};
template <class T>
concept is_awaited = requires(T&& t) {
  ramie::on_ready(std::forward<T>(t), [] {});
};
template <class Arena>
concept shows_steps = requires(Arena& a) {
  a.prepare();
};

TEST_CASE("a timeout is a duration, and internals are not public", "[conformance][api]") {
  STATIC_REQUIRE(is_timeout<std::chrono::seconds>);
  STATIC_REQUIRE(is_timeout<std::chrono::duration<double>>);
  STATIC_REQUIRE_FALSE(is_timeout<steady_clock::time_point>);
  STATIC_REQUIRE_FALSE(is_timeout<ramie::deadline>);
  STATIC_REQUIRE(is_time<steady_clock::time_point>);
  STATIC_REQUIRE(is_time<ramie::deadline>);

  STATIC_REQUIRE_FALSE(std::is_constructible_v<ramie::task<int>, ramie::nursery_internal::task_handle>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<ramie::sender<int>, ramie::channel_internal::channel_ref>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<ramie::receiver<int>, ramie::channel_internal::channel_ref>);
  STATIC_REQUIRE_FALSE(
      std::is_constructible_v<ramie::oneshot_sender<int>, ramie::channel_internal::oneshot_block<int>*>);
  STATIC_REQUIRE_FALSE(
      std::is_constructible_v<ramie::oneshot_receiver<int>, ramie::channel_internal::oneshot_block<int>*>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<ramie::broadcast_receiver<int>, ramie::channel_internal::log_reader>);
  STATIC_REQUIRE_FALSE(std::is_constructible_v<ramie::watch_receiver<int>, ramie::channel_internal::log_reader>);
  STATIC_REQUIRE_FALSE(shows_source<ramie::task<int>>);
  STATIC_REQUIRE_FALSE(shows_source<ramie::shutdown_token>);
  STATIC_REQUIRE_FALSE(shows_steps<ramie::arena>);

  STATIC_REQUIRE(is_awaited<ramie::task<int>&>);
  STATIC_REQUIRE(is_awaited<const ramie::shutdown_token&>);
  STATIC_REQUIRE_FALSE(is_awaited<ramie::task<int>>);
  STATIC_REQUIRE_FALSE(is_awaited<ramie::shutdown_token>);
}

TEST_CASE("an outcome that is const has a value, or rethrows", "[conformance][api][gather]") {
  const ramie::outcome<int> good(5);
  const ramie::outcome<int> bad(std::make_exception_ptr(std::runtime_error("no")));
  CHECK(good.value() == 5);
  CHECK_THROWS_AS(bad.value(), std::runtime_error);
}

// What it returns is part of it, and gone with it.
struct gives_part {
  std::string part = std::string(100, 'q');
  std::string&& operator()() { return std::move(part); }
};

TEST_CASE("what a result refers to as an rvalue is moved, wherever a callable is called", "[conformance][api][blocking]") {
  const std::string expected(100, 'q');
  test::findings found;
  const std::string of_run = ramie::run(gives_part{});
  ramie::run([&] {
    const auto detached = ramie::blocking(ramie::detach_on_cancel, gives_part{});
    const auto called = ramie::blocking(gives_part{});
    const auto in_time = ramie::with_timeout(1h, gives_part{});
    const auto scoped = ramie::with_nursery([f = gives_part{}](ramie::nursery&) mutable -> std::string&& { return f(); });
    EXPECT(found, detached == expected, called == expected, in_time == expected, scoped == expected);
  });
  CHECK(of_run == expected);
  CHECK(found.wrong() == "");
  STATIC_REQUIRE(std::is_same_v<decltype(ramie::blocking(ramie::detach_on_cancel, gives_part{})), std::string>);
}

}  // namespace conformance_public_api
