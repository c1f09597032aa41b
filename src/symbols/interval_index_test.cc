// SPDX-License-Identifier: Apache-2.0
// Flattened ranges against a search through all of them.

#include "symbols/interval_index.h"

#include <gtest/gtest.h>

#include <random>

namespace malloscope::symbols {
namespace {

using Interval = IntervalIndex::Interval;

uint32_t naive(const std::vector<Interval>& intervals, uint64_t address) {
  const Interval* best = nullptr;
  for (const Interval& i : intervals)
    if (i.start <= address && address < i.end && (!best || i.start >= best->start)) best = &i;
  return best ? best->value : IntervalIndex::kNone;
}

TEST(IntervalIndex, FindsWhatASearchThroughAllRangesFinds) {
  std::mt19937 random(5);
  for (int round = 0; round < 3000; ++round) {
    std::vector<Interval> intervals;
    for (uint32_t v = 0; random() % 8 != 0; ++v) {
      uint64_t start = random() % 40;
      intervals.push_back({start, start + random() % 15, v});
    }
    IntervalIndex index(intervals);
    for (uint64_t address = 0; address < 60; ++address)
      ASSERT_EQ(index.find(address), naive(intervals, address)) << "round " << round;
  }
}

TEST(IntervalIndex, GivesTheInnermostOfNestedRanges) {
  IntervalIndex index({{0x100, 0x180, 0}, {0x110, 0x150, 1}, {0x110, 0x120, 2}, {0x140, 0x150, 3}});
  EXPECT_EQ(index.find(0xff), IntervalIndex::kNone);
  EXPECT_EQ(index.find(0x100), 0u);
  EXPECT_EQ(index.find(0x110), 2u);
  EXPECT_EQ(index.find(0x120), 1u);
  EXPECT_EQ(index.find(0x14f), 3u);
  EXPECT_EQ(index.find(0x150), 0u);
  EXPECT_EQ(index.find(0x180), IntervalIndex::kNone);
}

TEST(IntervalIndex, HoldsRangesAtTheEndOfTheAddressSpace) {
  IntervalIndex index({{UINT64_MAX - 10, UINT64_MAX, 4}});
  EXPECT_EQ(index.find(UINT64_MAX - 1), 4u);
  EXPECT_EQ(index.find(UINT64_MAX - 11), IntervalIndex::kNone);
}

}  // namespace
}  // namespace malloscope::symbols
