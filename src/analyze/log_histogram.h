// SPDX-License-Identifier: Apache-2.0
// A histogram of numbers of any size in little memory: eight steps between each
// power of two and the next, only those that are used. So a quantile is known to within
// one step (12.5 %), and how many numbers lie between two powers of two, and the highest, exactly.

#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace malloscope::analyze {

class LogHistogram {
 public:
  void add(uint64_t number, uint64_t times = 1) {
    highest_ = std::max(highest_, number);
    add_step(step_of(number), times);
  }

  // Adds numbers of a step, of which `highest` is not below any.
  void restore(uint16_t step, uint64_t times, uint64_t highest) {
    highest_ = std::max(highest_, highest);
    if (times > 0) add_step(step, times);
  }

  LogHistogram& operator+=(const LogHistogram& other) {
    highest_ = std::max(highest_, other.highest_);
    for (const Step& s : other.steps_) add_step(s.step, s.times);
    return *this;
  }

  uint64_t highest() const { return highest_; }  // 0 if there is none.

  uint64_t count() const {
    uint64_t sum = 0;
    for (const Step& s : steps_) sum += s.times;
    return sum;
  }

  // The middle of the step that holds the number which a `share` of all are not above; but not more
  // than the highest, which may be below the middle of its step.
  uint64_t quantile(double share) const {
    std::vector<Step> sorted = steps_;
    std::ranges::sort(sorted, {}, &Step::step);
    auto rank = static_cast<uint64_t>(share * static_cast<double>(count()));
    for (const Step& s : sorted) {
      if (rank < s.times)
        return std::min(highest_, low_of(s.step) + (low_of(s.step + 1) - low_of(s.step)) / 2);
      rank -= s.times;
    }
    return sorted.empty() ? 0 : low_of(sorted.back().step);
  }

  // Numbers n with bit_width(n) == k: 0 for 0, else from 2^(k-1) to 2^k - 1.
  uint64_t of_width(unsigned k) const {
    uint64_t sum = 0;
    for (const Step& s : steps_)
      if (width(low_of(s.step)) == k) sum += s.times;
    return sum;
  }

  static constexpr uint16_t kSteps = 8 * 60 + 16;
  // Numbers below 8 are steps of their own.
  static uint16_t step_of(uint64_t n) {
    if (n < 8) return static_cast<uint16_t>(n);
    unsigned shift = width(n) - 4;  // Leaves the leading bit and three more.
    return static_cast<uint16_t>(8 * shift + (n >> shift));
  }

  // The lowest number of a step.
  static uint64_t low_of(unsigned step) {
    if (step < 16) return step;
    unsigned shift = step / 8 - 1;
    return shift > 60 ? UINT64_MAX : uint64_t{8 + step % 8} << shift;
  }

 private:
  struct Step {
    uint16_t step;
    uint64_t times;
  };

  void add_step(uint16_t step, uint64_t times) {
    for (Step& s : steps_)
      if (s.step == step) {
        s.times += times;
        return;
      }
    steps_.push_back({step, times});
  }

  static unsigned width(uint64_t n) {
    return n == 0 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(n));
  }

  uint64_t highest_ = 0;
  std::vector<Step> steps_;  // In the order of their first use: few, and mostly the first ones.
};

}  // namespace malloscope::analyze
