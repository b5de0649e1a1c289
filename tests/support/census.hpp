// SPDX-License-Identifier: BSL-1.0
// Objects that are counted: every one made must be destroyed exactly once.
#pragma once

#include <atomic>
#include <utility>

namespace test {

struct census {
  std::atomic<long> made{0};
  std::atomic<long> gone{0};
  [[nodiscard]] long alive() const { return made.load() - gone.load(); }
};

// Counts itself, moved-from shells not included: a copy or the first of a chain of moves is one person.
class citizen {
 public:
  explicit citizen(census& c) : census_(&c) { c.made.fetch_add(1); }
  citizen(const citizen& other) : census_(other.census_) {
    if (census_ != nullptr) census_->made.fetch_add(1);
  }
  citizen(citizen&& other) noexcept : census_(std::exchange(other.census_, nullptr)) {}
  citizen& operator=(const citizen&) = delete;
  ~citizen() {
    if (census_ != nullptr) census_->gone.fetch_add(1);
  }

 private:
  census* census_;
};

}  // namespace test
