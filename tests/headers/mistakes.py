# SPDX-License-Identifier: BSL-1.0
"""Likely mistakes of users: what does not compile, and the sentence that the first error of the compiler must have.

A piece is the body of a function; `n` is a nursery, `c` a channel<int>.
"""

BEFORE = """#include <ramie/ramie.hpp>
#include <memory>
#include <string>
#include <variant>
struct pinned {
  pinned() = default;
  pinned(pinned&&) = delete;
};
struct may_throw {
  may_throw() = default;
  may_throw(may_throw&&) noexcept(false) {}
};
int by_reference(int& x);
"""
IN_A_FUNCTION = """void f([[maybe_unused]] ramie::nursery& n, [[maybe_unused]] const ramie::channel<int>& c) {
  %s
}
"""

NO_VOID = "ramie: a channel carries values, and void has none."
NO_REFERENCE = "ramie: a channel carries values, not references."
NOT_CONST = "ramie: a channel carries values that can be moved: nothing const or volatile"
NOT_CALLABLE = "ramie: spawn(f, args...) calls f(args...) once"
NOT_COPIED = "ramie: spawn moves or copies f and its arguments into the child."
BY_VALUE = "ramie: moving an element of this type may throw"

MOST_ERRORS = 8  # after a mistake: the sentence must not drown in what follows from it
MISTAKES = [
    ("channel<void>", "ramie::channel<void> v(1);", NO_VOID),
    ("an empty channel<void>", "ramie::channel<void> v;", NO_VOID),
    ("channel<T&>", "ramie::channel<int&> v(1);", NO_REFERENCE),
    ("channel<const T>", "ramie::channel<const int> v(1);", NOT_CONST),
    ("channel<T[]>", "ramie::channel<int[4]> v(1);", NOT_CONST),
    ("make_channel<void>", "auto ends = ramie::make_channel<void>(1);", NO_VOID),
    ("the ends of make_channel<void>", "auto [tx, rx] = ramie::make_channel<void>(1);", NO_VOID),
    ("make_channel<T&>", "auto ends = ramie::make_channel<int&>(1);", NO_REFERENCE),
    ("make_oneshot<void>", "auto ends = ramie::make_oneshot<void>();", NO_VOID),
    ("make_oneshot<T&>", "auto ends = ramie::make_oneshot<int&>();", NO_REFERENCE),
    ("broadcast<void>", "ramie::broadcast<void> b(1);", NO_VOID),
    ("broadcast<T&>", "ramie::broadcast<int&> b(1);", NO_REFERENCE),
    ("watch<const T>", "ramie::watch<const int> w(1);", NOT_CONST),
    ("a channel of what can't be moved", "ramie::channel<pinned> v(1);", "ramie: a channel moves its elements"),
    ("a oneshot of what can't be moved", "auto ends = ramie::make_oneshot<pinned>();", "ramie: a oneshot moves its value"),
    ("a broadcast of what can't be copied", "ramie::broadcast<std::unique_ptr<int>> b(1);", "ramie: a broadcast copies its messages"),
    ("an lvalue sent that can only be moved", "ramie::channel<std::unique_ptr<int>> v(1); std::unique_ptr<int> p; v.send(p);",
     "ramie: this element can be moved, not copied."),

    ("spawn with nine arguments", "n.spawn([](auto...) {}, 1, 2, 3, 4, 5, 6, 7, 8, 9);", "ramie: nursery::spawn: spawn(f, args...) takes up to eight arguments."),
    ("spawn with ten arguments", "n.spawn([](auto...) {}, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);", "ramie: nursery::spawn: spawn(f, args...) takes up to eight arguments."),
    ("spawn with four wrong arguments", "n.spawn([](int, int, int) {}, 1, 2, 3, 4);", NOT_CALLABLE),
    ("a race of nine", "auto f = [] {}; ramie::race(f, f, f, f, f, f, f, f, f);", "ramie: join_all, try_join_all, race and parallel_invoke take up to eight functions"),
    ("spawn of what can't be called", "n.spawn(42);", NOT_CALLABLE),
    ("spawn without the argument", "n.spawn([](int) {});", NOT_CALLABLE),
    ("spawn with an argument too many", "n.spawn([] {}, 1);", NOT_CALLABLE),
    ("spawn with a reference that is none", "int x = 1; n.spawn(by_reference, x);", NOT_CALLABLE),
    ("spawn with options and a wrong argument", "n.spawn({}, [](std::string) {}, 1, 2, 3, 4);", NOT_CALLABLE),
    ("spawn with an lvalue that can only be moved", "std::unique_ptr<int> p; n.spawn([](std::unique_ptr<int>) {}, p);", NOT_COPIED),
    ("spawn of an lvalue that can only be moved", "auto f = [p = std::make_unique<int>()] {}; n.spawn(f);", NOT_COPIED),
    ("spawn of what returns an rvalue reference to what can't be moved", "static pinned p; n.spawn([]() -> pinned&& { return std::move(p); });",
     "ramie: spawn moves what f returns as an rvalue reference into the task"),
    ("run of what can't be called", "ramie::run(42);", "ramie: run(f) calls f() without arguments"),
    ("run with a parameter", "ramie::run([](int) {});", "ramie: run(f) calls f() without arguments"),
    ("run with options and a parameter", "ramie::run(ramie::options{}, [](int) {});", "ramie: run(f) calls f() without arguments"),
    ("run with options alone", "ramie::run(ramie::options{});", "ramie: run(f) calls f() without arguments"),
    ("with_nursery without a nursery", "ramie::with_nursery([] {});", "ramie: with_nursery(f) calls f(n) with a nursery&"),
    ("with_timeout with a parameter", "ramie::with_timeout(std::chrono::seconds(1), [](int) {});", "ramie: with_timeout and with_deadline call f()"),
    ("blocking with a parameter", "ramie::blocking([](int) {});", "ramie: blocking(f) calls f() without arguments"),

    ("on_recv with another type", "ramie::select(ramie::on_recv(c, [](std::string) {}));", "ramie: the handler of on_recv takes a std::optional<T>"),
    ("on_recv with nothing", "ramie::select(ramie::on_recv(c, [] {}));", "ramie: the handler of on_recv takes a std::optional<T>"),
    ("on_recv of a sender", "ramie::select(ramie::on_recv(ramie::sender<int>(), [](auto) {}));", "ramie: on_recv takes a channel or a receiver."),
    ("on_recv of a oneshot", "ramie::select(ramie::on_recv(ramie::oneshot_receiver<int>(), [](auto) {}));", "ramie: on_recv takes a channel or a receiver."),
    ("on_send with nothing", "int x = 1; ramie::select(ramie::on_send(c, x, [] {}));", "ramie: the handler of on_send takes a bool"),
    ("on_send of a receiver", "int x = 1; ramie::select(ramie::on_send(ramie::receiver<int>(), x, [](bool) {}));", "ramie: on_send takes a channel or a sender."),
    ("with_timeout of a time", "(void)ramie::with_timeout(ramie::now(), [] {});", "deleted function"),
    ("on_ready of a temporary", "ramie::select(ramie::on_ready(ramie::task<int>(), [] {}));", "deleted function"),
    ("on_ready of a channel", "ramie::select(ramie::on_ready(c, [] {}));", "ramie: on_ready takes a task"),
    ("on_ready with a parameter", "ramie::task<int> t; ramie::select(ramie::on_ready(t, [](int) {}));", "ramie: the handler of this case takes nothing."),
    ("a selector's on_recv with nothing", "ramie::selector s; s.on_recv(c, [] {});", "ramie: the handler of on_recv takes a std::optional<T>"),
    ("on_recv by value of what may throw", "ramie::channel<may_throw> m(1); ramie::select(ramie::on_recv(m, [](std::optional<may_throw>) {}));", BY_VALUE),
    ("on_recv by auto of what may throw", "ramie::channel<may_throw> m(1); ramie::select(ramie::on_recv(m, [](auto) {}));", BY_VALUE),
    ("on_recv by value, mutable and noexcept", "ramie::channel<may_throw> m(1); ramie::select(ramie::on_recv(m, [](std::optional<may_throw>) mutable noexcept {}));", BY_VALUE),
    ("on_recv by a function of what may throw", "ramie::channel<may_throw> m(1); void (*f)(std::optional<may_throw>) = nullptr; ramie::select(ramie::on_recv(m, f));", BY_VALUE),
    ("on_recv by value of what may throw, of lvalues only",
     "struct h { void operator()(std::optional<may_throw>) & {} }; ramie::channel<may_throw> m(1); ramie::select(ramie::on_recv(m, h{}));", BY_VALUE),
    ("a selector's on_recv by value of what may throw", "ramie::channel<may_throw> m(1); ramie::selector s; s.on_recv(m, [](std::optional<may_throw>) {});", BY_VALUE),
]

NO_MISTAKE = ("what looks like a mistake and is none", """
  int x = 1;
  n.spawn({}, [](auto...) {}, 1, 2, 3, 4, 5, 6, 7, 8, 9);
  n.spawn([](int, int, int, int) {}, 1, 2, 3, 4);
  n.spawn([](int, int, int) {}, 1, 2, 3, ramie::source_location::current());
  n.spawn(by_reference, std::ref(x));
  ramie::task<int&> referred = n.spawn([&x]() -> int& { return x; });
  static_assert(std::is_same_v<decltype(referred.get()), int&>);
  ramie::task<std::string> moved = n.spawn([s = std::string()]() mutable -> std::string&& { return std::move(s); });
  n.spawn([p = std::make_unique<int>()] {});
  n.spawn([](std::unique_ptr<int>) {}, std::make_unique<int>());
  n.spawn([] { return std::make_unique<pinned>(); });
  int& same = ramie::run([&x]() -> int& { return x; });
  ramie::run(ramie::options{}, [] {});
  ramie::channel<int*> pointers(1);
  ramie::channel<std::monostate> signals(1);
  signals.send({});
  ramie::channel<may_throw> m(1);
  ramie::select(ramie::on_recv(m, [](std::optional<may_throw>&&) {}), ramie::on_recv(m, [](const auto&) {}),
                ramie::on_recv(m, [](auto&&) {}), ramie::on_recv(m, [](auto&&...) {}), ramie::on_recv(c, [](auto) {}));
  struct list {
    ramie::channel<list> more;  // of a type that is not complete yet
  };
  ramie::channel<list> lists(1);
  ramie::select(ramie::otherwise([] {}));
  (void)same;
""", "no error")
