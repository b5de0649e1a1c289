// SPDX-License-Identifier: BSL-1.0
// What the runtime reported while this object lived, instead of standard error; without stalls, of which a slow machine
// has many.
#pragma once

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include <ramie/report.hpp>

namespace test {

class reports {
 public:
  reports() {
    all().clear();
    former_ = ramie::set_report_handler([](const ramie::report& r) noexcept {
      if (r.kind == ramie::report_kind::stalled_worker) return;
      std::lock_guard hold(lock());
      all().push_back(r);
    });
  }
  ~reports() { ramie::set_report_handler(former_); }
  reports(const reports&) = delete;
  reports& operator=(const reports&) = delete;

  [[nodiscard]] std::vector<ramie::report> taken() const {
    std::lock_guard hold(lock());
    return all();
  }
  [[nodiscard]] long count(ramie::report_kind kind) const {
    const auto seen = taken();
    return std::count_if(seen.begin(), seen.end(), [kind](const ramie::report& r) { return r.kind == kind; });
  }

 private:
  static std::mutex& lock() {
    static std::mutex the_lock;
    return the_lock;
  }
  static std::vector<ramie::report>& all() {
    static std::vector<ramie::report> the_reports;
    return the_reports;
  }
  ramie::report_handler former_;
};

}  // namespace test
