// SPDX-License-Identifier: Apache-2.0

#include "wire/sampling.h"

#include <gtest/gtest.h>

#include <bit>

namespace malloscope::wire {
namespace {

TEST(Sampling, AllBlocksAreRecordedThatAreNotSmallerThanThePeriod) {
  for (unsigned period = 1; period <= kMostSampleLog2; ++period) {
    EXPECT_EQ(sample_weight_log2(uint64_t{1} << period, period), 0u);
    EXPECT_EQ(sample_weight_log2(UINT64_MAX, period), 0u);
    EXPECT_EQ(sample_weight_log2((uint64_t{1} << period) - 1, period), 1u);
  }
}

TEST(Sampling, WithoutAPeriodEveryBlockStandsForItself) {
  for (uint64_t size : {0, 1, 7, 4096}) EXPECT_EQ(sample_weight_log2(size, 0), 0u);
}

// So that about one block is recorded for each period: not more than one, not less than half a one.
TEST(Sampling, WhatABlockStandsForIsAboutAPeriodOfBytes) {
  constexpr unsigned kPeriod = 12;
  for (uint64_t size = 1; size < uint64_t{1} << kPeriod; ++size) {
    uint64_t bytes = size << sample_weight_log2(size, kPeriod);
    EXPECT_GE(bytes, uint64_t{1} << kPeriod) << size;
    EXPECT_LT(bytes, uint64_t{2} << kPeriod) << size;
  }
  EXPECT_EQ(sample_weight_log2(0, kPeriod), kPeriod);
}

// A cell of an index holds one class of sizes: what a block of it stands for must be one number.
TEST(Sampling, SizesOfOneClassStandForTheSameNumber) {
  for (uint64_t size = 1; size < 5000; ++size)
    EXPECT_EQ(sample_weight_log2(size, 20), sample_weight_log2(std::bit_floor(size), 20));
}

}  // namespace
}  // namespace malloscope::wire
