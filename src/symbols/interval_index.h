// SPDX-License-Identifier: Apache-2.0
// Overlapping address ranges, flattened so that one binary search answers which
// of them an address belongs to.
//
//     outer   [----------------)           value 0
//     inner        [-----)                 value 1
//     flat    0    1     0     none
//
// Where ranges overlap, the one that starts later wins, and of two that start
// together the later in the list. For nested ranges listed outermost first that
// is the innermost one; ranges that cross, as only damaged files have them, give
// some answer all the same.

#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace malloscope::symbols {

class IntervalIndex {
 public:
  struct Interval {
    uint64_t start;
    uint64_t end;
    uint32_t value;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  IntervalIndex() = default;

  explicit IntervalIndex(std::vector<Interval> intervals) {
    std::erase_if(intervals, [](const Interval& i) { return i.start >= i.end; });
    std::vector<uint32_t> order(intervals.size());
    std::iota(order.begin(), order.end(), 0u);
    std::ranges::sort(order, {}, [&](uint32_t i) { return std::pair(intervals[i].start, i); });
    // The ranges that hold the current address, and some that have ended under one that has not.
    std::vector<Interval> open;
    for (uint32_t i : order) {
      const Interval& next = intervals[i];
      close_until(&open, next.start);
      open.push_back(next);
      begin_segment(next.start, next.value);
    }
    close_until(&open, UINT64_MAX);
    segments_.shrink_to_fit();
  }

  // kNone if no range holds the address.
  uint32_t find(uint64_t address) const {
    auto after = std::upper_bound(segments_.begin(), segments_.end(), address,
                                  [](uint64_t a, const Segment& s) { return a < s.start; });
    return after == segments_.begin() ? kNone : std::prev(after)->value;
  }

  bool empty() const { return segments_.empty(); }

 private:
  struct Segment {
    uint64_t start;
    uint32_t value;
  };

  void close_until(std::vector<Interval>* open, uint64_t address) {
    while (!open->empty() && open->back().end <= address) {
      uint64_t end = open->back().end;
      while (!open->empty() && open->back().end <= end) open->pop_back();
      begin_segment(end, open->empty() ? kNone : open->back().value);
    }
  }

  void begin_segment(uint64_t start, uint32_t value) {
    if (!segments_.empty() && segments_.back().start == start) segments_.pop_back();
    uint32_t before = segments_.empty() ? kNone : segments_.back().value;
    if (before != value) segments_.push_back({start, value});
  }

  std::vector<Segment> segments_;
};

}  // namespace malloscope::symbols
