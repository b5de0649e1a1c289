// SPDX-License-Identifier: BSL-1.0
#include "strategies.hpp"

#include <array>
#include <cstdlib>

#include "tests/support/random.hpp"

namespace explore {

namespace {

// Who yields for ever would keep the processor from those it waits for: after so many steps everybody has a turn.
constexpr unsigned longest_unfair = 8'000;

// Every row of choices within the bounds, the first option first.
class every_row : public decisions {
 public:
  explicit every_row(const limits& within) : within_(within) {}

  bool begin() override {
    if (!started_) {
      started_ = true;
    } else if (!advance()) {
      return false;
    }
    depth_ = 0;
    steps_ = preemptions_ = stale_ = 0;
    return true;
  }
  std::size_t next_thread(const std::vector<std::size_t>& ready, bool stays) override {
    if (++steps_ > longest_unfair) return ready[steps_ % ready.size()];
    if (stays && preemptions_ >= within_.preemptions) return ready[0];
    const auto c = choose(static_cast<unsigned>(ready.size()));
    if (stays && c != 0) ++preemptions_;
    return ready[c];
  }
  unsigned which_value(unsigned values) override {
    if (stale_ >= within_.stale) return 0;
    const auto c = choose(values);
    if (c != 0) ++stale_;
    return c;
  }
  // Pairs: how many first options, then which other one.
  std::string replay() const override {
    std::string text = "choices:";
    int first_options = 0;
    for (std::size_t i = 0; i < depth_; ++i) {
      if (row_[i].taken == 0) {
        ++first_options;
      } else {
        text += std::to_string(first_options) + "." + std::to_string(row_[i].taken) + ",";
        first_options = 0;
      }
    }
    return text;
  }

 protected:
  struct choice {
    unsigned taken, options;
  };
  unsigned choose(unsigned options) {
    if (options <= 1) return 0;
    if (depth_ == row_.size()) row_.push_back({0, options});
    if (row_[depth_].options == 0) row_[depth_].options = options;
    if (row_[depth_].options != options) fail("the program is not the same when it is run again");
    return row_[depth_++].taken;
  }
  std::vector<choice> row_;
  bool started_ = false;

 private:
  bool advance() {
    row_.resize(depth_);
    for (; !row_.empty(); row_.pop_back()) {
      if (++row_.back().taken < row_.back().options) return true;
    }
    return false;
  }

  const limits within_;
  std::size_t depth_ = 0;
  unsigned steps_ = 0, preemptions_ = 0, stale_ = 0;
};

class one_row final : public every_row {
 public:
  explicit one_row(const limits& within) : every_row(within) {
    const char* at = within.replay.c_str() + std::string("choices:").size();
    while (*at != '\0') {
      char* end = nullptr;
      const auto first_options = std::strtoul(at, &end, 10);
      const auto taken = static_cast<unsigned>(std::strtoul(end + 1, &end, 10));
      for (unsigned long i = 0; i < first_options; ++i) row_.push_back({0, 0});
      row_.push_back({taken, 0});
      at = end + (*end == ',' ? 1 : 0);
    }
  }
  bool begin() override { return !started_ && every_row::begin(); }
};

class by_seed : public decisions {
 public:
  explicit by_seed(const limits& within) : within_(within), seed_(within.seed), dice_(0) {}

  bool begin() override {
    if (started_ && !within_.replay.empty()) return false;
    if (started_) ++seed_;
    started_ = true;
    dice_ = test::dice(seed_);
    return true;
  }
  unsigned which_value(unsigned values) override {
    if (within_.stale == 0 || dice_.below(4) != 0) return 0;
    return dice_.below(values);
  }

 protected:
  const limits within_;
  std::uint64_t seed_;
  test::dice dice_;

 private:
  bool started_ = false;
};

class random_walk final : public by_seed {
 public:
  using by_seed::by_seed;
  std::size_t next_thread(const std::vector<std::size_t>& ready, bool stays) override {
    // A thread that can go on mostly does: all interleavings are possible, those with few preemptions likely.
    if (stays && dice_.below(4) != 0) return ready[0];
    return ready[dice_.below(ready.size())];
  }
  std::string replay() const override { return "random:" + std::to_string(seed_); }
};

class by_priority final : public by_seed {
 public:
  using by_seed::by_seed;
  bool begin() override {
    if (!by_seed::begin()) return false;
    steps_ = 0;
    for (auto& p : priority_) p = static_cast<int>(dice_.below(1'000'000)) + 1;
    changes_.clear();
    // How long the program runs is not known before, and the seed alone must replay it: early moments more likely.
    for (unsigned i = 0; i < within_.preemptions; ++i) changes_.push_back(dice_.below(2u << dice_.below(12)) + 1);
    return true;
  }
  std::size_t next_thread(const std::vector<std::size_t>& ready, bool) override {
    if (++steps_ > longest_unfair) return ready[dice_.below(ready.size())];
    const std::size_t best = highest(ready);
    for (std::size_t i = 0; i < changes_.size(); ++i) {
      if (changes_[i] == steps_) priority_[best % priority_.size()] = -static_cast<int>(i);
    }
    return highest(ready);
  }
  std::string replay() const override { return "pct:" + std::to_string(seed_); }

 private:
  std::size_t highest(const std::vector<std::size_t>& ready) const {
    std::size_t best = ready[0];
    for (const auto t : ready) {
      if (priority_[t % priority_.size()] > priority_[best % priority_.size()]) best = t;
    }
    return best;
  }
  std::array<int, 16> priority_{};
  std::vector<unsigned> changes_;
  unsigned steps_ = 0;
};

}  // namespace

std::unique_ptr<decisions> decide(const limits& within) {
  limits exact = within;
  const auto named = [&](const char* kind) { return within.replay.rfind(kind, 0) == 0; };
  if (named("choices:")) return std::make_unique<one_row>(within);
  if (named("random:") || named("pct:")) {
    exact.seed = std::strtoull(within.replay.c_str() + within.replay.find(':') + 1, nullptr, 10);
    exact.how = named("pct:") ? strategy::pct : strategy::random;
  }
  switch (exact.how) {
    case strategy::random: return std::make_unique<random_walk>(exact);
    case strategy::pct: return std::make_unique<by_priority>(exact);
    default: return std::make_unique<every_row>(exact);
  }
}

}  // namespace explore
