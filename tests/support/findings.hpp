// SPDX-License-Identifier: BSL-1.0
// What went wrong in fibers and threads: noted there, with its place, its text and its values, and checked outside.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/source_location.hpp>
#include <support/fiber_group.hpp>
#include <support/test.hpp>

namespace test {

class findings {
 public:
  // For what is either true or false. EXPECT(found, expression) says more: what the values were.
  void expect(bool holds, ramie::source_location where = ramie::source_location::current()) {
    if (!holds) note_line(where);
  }
  void note(ramie::source_location where, std::string text);
  // "file.cpp:12: a == b, where 1 == 2 (3 times); " for each place, with the values of the first time, or "" if all was
  // well.
  [[nodiscard]] std::string wrong();

 private:
  void note_line(ramie::source_location where);

  struct finding {
    int times = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<std::pair<std::string, unsigned long>, finding> wrong_;
};

// There are a thousand EXPECTs, so they are made to be cheap to compile: an operand is its address and a function that
// knows its type, most of those functions are compiled once (findings.cpp), and nothing in a case has a destructor.
namespace telling {

using teller = std::string (*)(const void* value);

std::string truth(const void* value);
std::string letter(const void* value);
template <class Integer>
std::string integer(const void* value);
std::string real(const void* value);
std::string null(const void* value);
std::string pointer(const void* value);
std::string pointed_to(const void* value);  // const char*
std::string characters(const void* value);  // an array of them
std::string string(const void* value);
std::string view(const void* value);
std::string quoted(std::string_view text);
std::string errc(const void* value);
std::string error_code(const void* value);
std::string error_condition(const void* value);
std::string unknown(const void* value);

template <class T>
constexpr teller of();

template <class T>
std::string other(const void* untyped) {
  const T& value = *static_cast<const T*>(untyped);
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return quoted(value);
  } else if constexpr (requires { std::string(to_string(value)); }) {
    return std::string(to_string(value));
  } else if constexpr (std::is_enum_v<T>) {
    return of<std::underlying_type_t<T>>()(untyped);
  } else if constexpr (requires { std::string(value.to_string()); }) {
    return value.to_string();
  } else if constexpr (requires { static_cast<long long>(value.count()); }) {
    return std::to_string(static_cast<long long>(value.count()));
  } else if constexpr (requires { static_cast<long long>(value.time_since_epoch().count()); }) {
    return std::to_string(static_cast<long long>(value.time_since_epoch().count()));
  } else if constexpr (requires { value.load(); }) {
    const auto now = value.load();
    return of<std::remove_const_t<decltype(now)>>()(&now);
  } else if constexpr (requires {
                         value.has_value();
                         *value;
                       }) {
    return value.has_value() ? of<std::remove_cvref_t<decltype(*value)>>()(&*value) : "nothing";
  } else if constexpr (requires {
                         value.size();
                         &*value.begin() == &*value.end();
                       }) {
    std::string all = "{";
    for (const auto& each : value) {
      if (all.size() > 200) return all + ", ...}";
      all += (all.size() == 1 ? "" : ", ") + of<std::remove_cvref_t<decltype(each)>>()(&each);
    }
    return all + "}";
  } else {
    return unknown(untyped);
  }
}

template <class T>
constexpr teller of() {
  if constexpr (std::is_same_v<T, bool>) {
    return truth;
  } else if constexpr (std::is_same_v<T, char>) {
    return letter;
  } else if constexpr (std::is_integral_v<T>) {
    return integer<T>;
  } else if constexpr (std::is_same_v<T, double>) {
    return real;
  } else if constexpr (std::is_null_pointer_v<T>) {
    return null;
  } else if constexpr (std::is_same_v<T, const char*> || std::is_same_v<T, char*>) {
    return pointed_to;
  } else if constexpr (std::is_pointer_v<T>) {
    return pointer;
  } else if constexpr (std::is_array_v<T> && std::is_same_v<std::remove_cv_t<std::remove_extent_t<T>>, char>) {
    return characters;
  } else if constexpr (std::is_same_v<T, std::string>) {
    return string;
  } else if constexpr (std::is_same_v<T, std::string_view>) {
    return view;
  } else if constexpr (std::is_same_v<T, std::errc>) {
    return errc;
  } else if constexpr (std::is_same_v<T, std::error_code>) {
    return error_code;
  } else if constexpr (std::is_same_v<T, std::error_condition>) {
    return error_condition;
  } else {
    return other<T>;
  }
}

}  // namespace telling

// One EXPECT while it is evaluated: which of its conditions is the last one that was begun, and the last comparison
// that did not hold, whose operands live as long as the full-expression.
class judgement {
 public:
  // True: all hold. Else the last condition, with its values, goes into `found`; `text` is that of all of them.
  void end(findings& found, bool all, const char* text, ramie::source_location where) const {
    if (!all) tell(found, text, where);
  }

  // Explicit, or std::optional's comparison with whatever can be compared to its value would take part.
  struct outcome {
    bool holds;
    explicit operator bool() const { return holds; }
  };
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"  // as it is where the expression stands, where 0 has no sign
  template <class L>
  struct left_side {
    judgement& here;
    const L& value;

    template <class R>
    outcome operator==(const R& r) const {
      return {value == r || differ(" == ", r)};
    }
    template <class R>
    outcome operator!=(const R& r) const {
      return {value != r || differ(" != ", r)};
    }
    template <class R>
    outcome operator<(const R& r) const {
      return {value < r || differ(" < ", r)};
    }
    template <class R>
    outcome operator<=(const R& r) const {
      return {value <= r || differ(" <= ", r)};
    }
    template <class R>
    outcome operator>(const R& r) const {
      return {value > r || differ(" > ", r)};
    }
    template <class R>
    outcome operator>=(const R& r) const {
      return {value >= r || differ(" >= ", r)};
    }
    template <class R>
    bool differ(const char* by, const R& r) const {
      return here.differ(any(value), by, any(r));
    }
    // Not a comparison.
    explicit operator bool() const { return static_cast<bool>(value); }
  };
#pragma GCC diagnostic pop
  template <class L>
  left_side<L> operator<=(const L& value) {
    begin();
    return {*this, value};
  }

 private:
  struct operand {
    const void* value;
    telling::teller tell;
  };
  template <class T>
  static operand any(const T& value) {
    if constexpr (std::is_function_v<T>)
      return {nullptr, telling::unknown};
    else
      return {&value, telling::of<T>()};
  }
  void begin() {
    ++conditions_;
    by_ = nullptr;
  }
  bool differ(operand left, const char* by, operand right);  // false
  void tell(findings& found, const char* text, ramie::source_location where) const;

  int conditions_ = 0;
  const char* by_ = nullptr;
  operand left_{}, right_{};
};

// g++ 12 can't be told so in the macro. Catch2 does the same.
#pragma GCC diagnostic ignored "-Wparentheses"

// EXPECT(found, a == b, c): notes the first of the conditions that does not hold in `found`, with its values; those
// after it are not evaluated. Any fiber or thread. A comma within one of them needs parentheses around it, not around
// all of that condition: got == (std::set<int>{1, 2}).
#define EXPECT(found, ...)                                                                                      \
  do {                                                                                                          \
    ::test::judgement judged_here;                                                                              \
    judged_here.end(found,                                                                                      \
                    static_cast<bool>(EXPECT_ALL(__VA_ARGS__, EXPECT_6, EXPECT_5, EXPECT_4, EXPECT_3, EXPECT_2, \
                                                 EXPECT_1)(__VA_ARGS__)),                                       \
                    #__VA_ARGS__, ::ramie::source_location::current());                                         \
  } while (false)
#define EXPECT_ALL(c1, c2, c3, c4, c5, c6, all, ...) all
#define EXPECT_1(c) (judged_here <= c)
#define EXPECT_2(c, ...) EXPECT_1(c) && EXPECT_1(__VA_ARGS__)
#define EXPECT_3(c, ...) EXPECT_1(c) && EXPECT_2(__VA_ARGS__)
#define EXPECT_4(c, ...) EXPECT_1(c) && EXPECT_3(__VA_ARGS__)
#define EXPECT_5(c, ...) EXPECT_1(c) && EXPECT_4(__VA_ARGS__)
#define EXPECT_6(c, ...) EXPECT_1(c) && EXPECT_5(__VA_ARGS__)

// f(found) on a plain thread and as a fiber: both must see the same.
template <class F>
void as_thread_and_fiber(F f) {
  findings found;
  f(found);
  CHECK(found.wrong() == "");
  ramie::run(with_workers(1), [&] { f(found); });
  CHECK(found.wrong() == "");
}

// f(found, clock) as a fiber on one worker, where a yield lets all others get as far as they can, and time stands
// still.
template <class F>
void as_fiber(F f) {
  findings found;
  ramie::manual_clock clock;
  auto o = with_workers(1);
  o.clock = &clock;
  ramie::run(o, [&] { f(found, clock); });
  CHECK(found.wrong() == "");
}

}  // namespace test
