// SPDX-License-Identifier: Apache-2.0
#include "analyze/log_histogram.h"

#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace malloscope::analyze {
namespace {

TEST(LogHistogram, KnowsQuantilesToAStepAndPowersOfTwoExactly) {
  std::mt19937_64 random(7);
  std::vector<uint64_t> numbers;
  LogHistogram one, two;
  std::vector<uint64_t> widths(65);
  for (int i = 0; i < 20'000; ++i) {
    uint64_t n = random() >> (random() % 64);
    numbers.push_back(n);
    (i % 3 ? one : two).add(n);
    ++widths[static_cast<size_t>(std::bit_width(n))];
  }
  one += two;
  EXPECT_EQ(one.count(), numbers.size());
  for (unsigned k = 0; k <= 64; ++k) EXPECT_EQ(one.of_width(k), widths[k]) << k;
  std::ranges::sort(numbers);
  for (double share : {0.0, 0.1, 0.5, 0.9, 0.999}) {
    auto exact = static_cast<double>(
        numbers[static_cast<size_t>(share * static_cast<double>(numbers.size()))]);
    EXPECT_NEAR(static_cast<double>(one.quantile(share)), exact, 0.0625 * exact) << share;
  }
}

TEST(LogHistogram, HasNoQuantileAboveTheHighest) {
  LogHistogram h, more;
  h.add(1024);  // Of a step from 1024 to 1151.
  EXPECT_EQ(h.quantile(0.9), 1024u);
  more.add(1030);
  h += more;
  EXPECT_EQ(h.highest(), 1030u);
  EXPECT_EQ(h.quantile(0.9), 1030u);
}

TEST(LogHistogram, IsExactForSmallNumbersAndEmpty) {
  LogHistogram h;
  EXPECT_EQ(h.quantile(0.5), 0u);
  for (uint64_t n : {0, 0, 0, 5}) h.add(n);
  EXPECT_EQ(h.quantile(0.5), 0u);
  EXPECT_EQ(h.quantile(0.9), 5u);
  h.add(UINT64_MAX);
  EXPECT_EQ(h.of_width(64), 1u);
}

}  // namespace
}  // namespace malloscope::analyze
