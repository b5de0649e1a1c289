// SPDX-License-Identifier: BSL-1.0
// What went wrong in fibers and threads: noted there, with its place, its text and its values, and checked outside.
#pragma once

#include <concepts>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include <ramie/clock.hpp>
#include <ramie/source_location.hpp>
#include <support/crew.hpp>
#include <support/source_text.hpp>
#include <support/test.hpp>

namespace test {

class findings {
 public:
  // EXPECT(found, expression) says more: what the values were.
  void expect(bool holds, ramie::source_location where = ramie::source_location::current()) {
    if (!holds) note(where, text_at(where), {});
  }
  void note(ramie::source_location where, std::string_view expression, const std::string& values) {
    std::lock_guard hold(mutex_);
    auto& found = wrong_[{where.file_name(), where.line()}];
    if (found.times++ == 0) found.text = std::string(expression) + (values.empty() ? "" : ", where " + values);
  }
  // "file.cpp:12: a == b, where 1 == 2 (3 times); " for each place, with the values of the first time, or "" if all was
  // well.
  [[nodiscard]] std::string wrong() {
    std::lock_guard hold(mutex_);
    std::string all;
    for (const auto& [place, what] : wrong_) {
      all += place.first + ":" + std::to_string(place.second) + ": " + what.text;
      all += what.times == 1 ? "; " : " (" + std::to_string(what.times) + " times); ";
    }
    return all;
  }

 private:
  struct finding {
    int times = 0;
    std::string text;
  };
  std::mutex mutex_;
  std::map<std::pair<std::string, unsigned long>, finding> wrong_;
};

// The text of a value, if it has one that is cheap to compile.
template <class T>
std::string text_of(const T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return value ? "true" : "false";
  } else if constexpr (std::is_same_v<T, char>) {
    return {'\'', value, '\''};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return std::to_string(value);
  } else if constexpr (std::is_enum_v<T>) {
    return std::to_string(static_cast<long long>(value));
  } else if constexpr (std::is_null_pointer_v<T>) {
    return "null";
  } else if constexpr (std::is_pointer_v<T>) {
    if (value == nullptr) return "null";
    if constexpr (std::is_same_v<T, const char*>) return '"' + std::string(value) + '"';
    return "a pointer";
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return '"' + std::string(std::string_view(value)) + '"';
  } else if constexpr (requires { std::string(value.message()); }) {
    return value.message();
  } else if constexpr (requires { static_cast<long long>(value.count()); }) {
    return std::to_string(static_cast<long long>(value.count()));
  } else if constexpr (requires { text_of(value.load()); }) {
    return text_of(value.load());
  } else if constexpr (requires { value.has_value(); *value; }) {
    return value.has_value() ? text_of(*value) : "nothing";
  } else {
    return "?";
  }
}

// What EXPECT makes of `a == b`: the result, and the texts of both if it is false.
struct compared {
  bool holds;
  std::string values;
  explicit operator bool() const noexcept { return holds; }
};
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-compare"  // as it is where the expression stands, where 0 has no sign
template <class L>
struct left_side {
  const L& value;

  template <class R>
  compared judge(bool holds, const char* by, const R& right) const {
    if (holds) return {true, {}};
    return {false, text_of(value) + by + text_of(right)};
  }
  template <class R>
  friend compared operator==(left_side l, const R& r) {
    return l.judge(l.value == r, " == ", r);
  }
  template <class R>
  friend compared operator!=(left_side l, const R& r) {
    return l.judge(l.value != r, " != ", r);
  }
  template <class R>
  friend compared operator<(left_side l, const R& r) {
    return l.judge(l.value < r, " < ", r);
  }
  template <class R>
  friend compared operator<=(left_side l, const R& r) {
    return l.judge(l.value <= r, " <= ", r);
  }
  template <class R>
  friend compared operator>(left_side l, const R& r) {
    return l.judge(l.value > r, " > ", r);
  }
  template <class R>
  friend compared operator>=(left_side l, const R& r) {
    return l.judge(l.value >= r, " >= ", r);
  }
  // Alone, and as the first of several that are joined by && or ||.
  explicit operator bool() const { return static_cast<bool>(value); }
};
#pragma GCC diagnostic pop
struct decomposer {
  template <class L>
  friend left_side<L> operator<=(decomposer, const L& value) {
    return {value};
  }
};

inline void expect_in(findings& found, const compared& result, const char* text, ramie::source_location where) {
  if (!result.holds) found.note(where, text, result.values);
}
inline void expect_in(findings& found, bool result, const char* text, ramie::source_location where) {
  if (!result) found.note(where, text, {});
}
template <class L>
void expect_in(findings& found, const left_side<L>& result, const char* text, ramie::source_location where) {
  if (!result) found.note(where, text, {});
}

// g++ 12 can't be told so in the macro. Catch2 does the same.
#pragma GCC diagnostic ignored "-Wparentheses"

// Notes the expression in `found` if it does not hold. Any fiber or thread.
#define EXPECT(found, ...)                                                                          \
  ::test::expect_in(found, ::test::decomposer() <= __VA_ARGS__, #__VA_ARGS__, ::ramie::source_location::current())

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
