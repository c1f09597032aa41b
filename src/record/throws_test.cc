// SPDX-License-Identifier: Apache-2.0

#include "record/throws.h"

#include <gtest/gtest.h>

#include <cmath>

namespace malloscope::record {
namespace {

TEST(Throws, HitAsOftenAsTheyShould) {
  constexpr int kThrows = 1 << 22;
  uint64_t state = first_throw(0x7f0012345000, 1);
  for (unsigned log2 : {1u, 4u, 10u}) {
    int hits = 0;
    for (int i = 0; i < kThrows; ++i) hits += throw_hits(&state, log2);
    double expected = static_cast<double>(kThrows) / static_cast<double>(1 << log2);
    EXPECT_NEAR(hits, expected, 5 * std::sqrt(expected)) << log2;
  }
}

// Forked children have their states at the same place and stamps that count up. If their throws
// went together, sums over many children would scatter more than chance does, or less.
TEST(Throws, OfManyShortLivesAreIndependent) {
  constexpr int kGroups = 2000, kChildren = 200, kCalls = 20;
  constexpr unsigned kLog2 = 4;
  double sum = 0, squares = 0;
  uint64_t stamp = 1;
  for (int group = 0; group < kGroups; ++group) {
    int hits = 0;
    for (int child = 0; child < kChildren; ++child) {
      uint64_t state = first_throw(0x7f0012345000 + static_cast<uint64_t>(group) * 4096, stamp++);
      for (int call = 0; call < kCalls; ++call) hits += throw_hits(&state, kLog2);
    }
    sum += hits;
    squares += static_cast<double>(hits) * hits;
  }
  double chance = 1.0 / (1 << kLog2), calls = kChildren * kCalls;
  double mean = sum / kGroups, variance = squares / kGroups - mean * mean;
  double wanted = calls * chance * (1 - chance);
  EXPECT_NEAR(mean, calls * chance, 5 * std::sqrt(wanted / kGroups));
  EXPECT_NEAR(variance / wanted, 1, 0.2);
}

}  // namespace
}  // namespace malloscope::record
