// SPDX-License-Identifier: Apache-2.0

#include "record/sampled_blocks.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <unordered_set>
#include <vector>

namespace malloscope::record {
namespace {

const void* block(uintptr_t i) { return reinterpret_cast<const void*>(0x7f0000000000 + i * 16); }

TEST(SampledBlocks, KnowWhatWasAddedOnce) {
  auto blocks = std::make_unique<SampledBlocks>();
  for (uintptr_t i = 0; i < 10'000; i += 2) blocks->add(block(i));
  for (uintptr_t i = 1; i < 10'000; i += 2) EXPECT_FALSE(blocks->take_out(block(i))) << i;
  for (uintptr_t i = 0; i < 10'000; i += 2) EXPECT_TRUE(blocks->take_out(block(i))) << i;
  for (uintptr_t i = 0; i < 10'000; ++i) EXPECT_FALSE(blocks->take_out(block(i))) << i;
}

// More than there is room for: frees that nobody asked for may be told, but none is missed.
TEST(SampledBlocks, MissNoneHoweverManyThereAre) {
  constexpr uintptr_t kMany = 1'000'000;
  auto blocks = std::make_unique<SampledBlocks>();
  for (uintptr_t i = 0; i < kMany; ++i) blocks->add(block(i));
  for (uintptr_t i = 0; i < kMany; ++i) ASSERT_TRUE(blocks->take_out(block(i))) << i;
}

TEST(SampledBlocks, AreOfManyThreadsAtOnce) {
  auto blocks = std::make_unique<SampledBlocks>();
  std::vector<std::thread> threads;
  std::atomic<int> missed = 0, strange = 0;
  for (uintptr_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (uintptr_t round = 0; round < 200; ++round) {
        for (uintptr_t i = 0; i < 500; ++i) blocks->add(block(t + 4 * i));
        for (uintptr_t i = 0; i < 500; ++i) missed += !blocks->take_out(block(t + 4 * i));
        for (uintptr_t i = 0; i < 500; ++i) strange += blocks->take_out(block(t + 4 * i));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(missed, 0);
  EXPECT_EQ(strange, 0);
}

}  // namespace
}  // namespace malloscope::record
