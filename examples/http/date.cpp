// SPDX-License-Identifier: BSL-1.0
#include "date.hpp"

#include <algorithm>
#include <chrono>

#include "characters.hpp"

namespace http {

namespace {

constexpr std::string_view days = "SunMonTueWedThuFriSat";
constexpr std::string_view months = "JanFebMarAprMayJunJulAugSepOctNovDec";

void write_number(char* to, int digits, int n) noexcept {
  for (; digits > 0; --digits, n /= 10) to[digits - 1] = static_cast<char>('0' + n % 10);
}

// Reads a text from its front; once something is not there, nothing is.
class scanner {
 public:
  explicit scanner(std::string_view text) : text_(text) {}
  void literal(std::string_view s) noexcept {
    good_ = good_ && text_.starts_with(s);
    if (good_) text_.remove_prefix(s.size());
  }
  int number(std::size_t digits) noexcept {
    int n = 0;
    for (std::size_t i = 0; i < digits; ++i) {
      good_ = good_ && i < text_.size() && character::digit(text_[i]);
      if (good_) n = n * 10 + (text_[i] - '0');
    }
    if (good_) text_.remove_prefix(digits);
    return n;
  }
  int day_of_two_columns() noexcept {
    if (!text_.starts_with(' ')) return number(2);
    text_.remove_prefix(1);
    return number(1);
  }
  int month() noexcept {
    const std::size_t at = text_.size() >= 3 ? months.find(text_.substr(0, 3)) : months.npos;
    good_ = good_ && at != months.npos && at % 3 == 0;
    if (!good_) return 0;
    text_.remove_prefix(3);
    return static_cast<int>(at / 3) + 1;
  }
  // "Sun, ", "Sunday, ", "Sun "; what day it is follows from the date.
  void day_name() noexcept {
    const std::size_t end = text_.find(' ');
    good_ = good_ && end != text_.npos && end >= 3;
    if (good_) text_.remove_prefix(end + 1);
  }
  [[nodiscard]] bool at_end() const noexcept { return good_ && text_.empty(); }
  [[nodiscard]] char peek(std::size_t i) const noexcept { return i < text_.size() ? text_[i] : '\0'; }

 private:
  std::string_view text_;
  bool good_ = true;
};

struct broken_down {
  int year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0;
};

void scan_time(scanner& s, broken_down& t) noexcept {
  t.hour = s.number(2);
  s.literal(":");
  t.minute = s.number(2);
  s.literal(":");
  t.second = s.number(2);
}

std::optional<seconds> composed(const broken_down& t) noexcept {
  using namespace std::chrono;
  const year_month_day day{year(t.year), month(static_cast<unsigned>(t.month)),
                           std::chrono::day(static_cast<unsigned>(t.day))};
  if (!day.ok() || t.hour > 23 || t.minute > 59 || t.second > 60) return std::nullopt;
  const auto since = sys_days(day).time_since_epoch();
  return duration_cast<std::chrono::seconds>(since).count() + t.hour * 3600 + t.minute * 60 + t.second;
}

int year_of(seconds t) noexcept {
  using namespace std::chrono;
  return int(year_month_day(floor<std::chrono::days>(sys_seconds(std::chrono::seconds(t)))).year());
}

// At most 50 years ahead (RFC 9110, 5.6.7).
int full_year(int two_digits, seconds now) noexcept {
  const int this_year = year_of(now);
  const int year = this_year / 100 * 100 + two_digits;
  return year > this_year + 50 ? year - 100 : year;
}

}  // namespace

date_text write_date(seconds t) noexcept {
  using namespace std::chrono;
  constexpr seconds first = -62'167'219'200, last = 253'402'300'799;  // of the years 0 and 9999
  const sys_seconds when{std::chrono::seconds(std::clamp(t, first, last))};
  const auto day = floor<std::chrono::days>(when);
  const year_month_day date(day);
  const hh_mm_ss time(when - day);
  date_text text;
  std::string_view("Sun, 06 Nov 1994 08:49:37 GMT").copy(text.data(), text.size());
  days.substr(weekday(day).c_encoding() * 3, 3).copy(text.data(), 3);
  write_number(text.data() + 5, 2, static_cast<int>(unsigned(date.day())));
  months.substr((unsigned(date.month()) - 1) * 3, 3).copy(text.data() + 8, 3);
  write_number(text.data() + 12, 4, int(date.year()));
  write_number(text.data() + 17, 2, static_cast<int>(time.hours().count()));
  write_number(text.data() + 20, 2, static_cast<int>(time.minutes().count()));
  write_number(text.data() + 23, 2, static_cast<int>(time.seconds().count()));
  return text;
}

std::optional<seconds> parse_date(std::string_view text, seconds now) noexcept {
  scanner s(text);
  broken_down t;
  s.day_name();
  if (s.peek(0) >= 'A') {  // Sun Nov  6 08:49:37 1994
    t.month = s.month();
    s.literal(" ");
    t.day = s.day_of_two_columns();
    s.literal(" ");
    scan_time(s, t);
    s.literal(" ");
    t.year = s.number(4);
  } else {
    const bool old = s.peek(2) == '-';  // Sunday, 06-Nov-94 08:49:37 GMT
    const std::string_view separator = old ? "-" : " ";
    t.day = s.number(2);
    s.literal(separator);
    t.month = s.month();
    s.literal(separator);
    t.year = old ? full_year(s.number(2), now) : s.number(4);
    s.literal(" ");
    scan_time(s, t);
    s.literal(" GMT");
  }
  return s.at_end() ? composed(t) : std::nullopt;
}

}  // namespace http
