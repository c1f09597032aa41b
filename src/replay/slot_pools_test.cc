// SPDX-License-Identifier: Apache-2.0
#include "replay/slot_pools.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace malloscope::replay {
namespace {

// As the planner does it.
uint32_t take(SlotPools* pools, uint32_t track) {
  if (pools->empty(track)) {
    if (auto donor = pools->donor())
      pools->move_half(*donor, track);
    else
      pools->add_new(track);
  }
  return pools->take(track);
}

TEST(SlotPools, GiveNoSlotTwice) {
  std::mt19937 random(1);
  SlotPools pools;
  constexpr uint32_t kTracks = 5;
  for (uint32_t i = 0; i < kTracks; ++i) pools.add_track();
  std::vector<uint32_t> used;
  std::set<uint32_t> in_use;
  size_t most = 0;
  for (int i = 0; i < 200'000; ++i) {
    // The first two allocate more, the others free more.
    auto track = static_cast<uint32_t>(random() % kTracks);
    if (used.empty() || random() % 100 < (track < 2 ? 90u : 25u)) {
      uint32_t slot = take(&pools, track);
      ASSERT_LT(slot, pools.slots());
      ASSERT_TRUE(in_use.insert(slot).second) << slot;
      used.push_back(slot);
    } else {
      std::swap(used[random() % used.size()], used.back());
      in_use.erase(used.back());
      pools.put(track, used.back());
      used.pop_back();
    }
    most = std::max(most, used.size());
  }
  // Few more than there ever were at once: each may have some that are not plenty.
  EXPECT_LT(pools.slots(), most + kTracks * 5'000);
}

TEST(SlotPools, TakeTheOneThatWasFreedLast) {
  SlotPools pools;
  pools.add_track();
  SlotPools::Range range = pools.add_new(0);
  EXPECT_EQ(range.first, 0u);
  EXPECT_EQ(pools.take(0), 0u);  // The first of new ones is on top.
  EXPECT_EQ(pools.take(0), 1u);
  pools.put(0, 0);
  EXPECT_EQ(pools.take(0), 0u);
  EXPECT_EQ(pools.most_free(0), range.count);
}

TEST(SlotPools, AskOnlyThoseWhoHavePlenty) {
  SlotPools pools;
  pools.add_track();
  pools.add_track();
  EXPECT_FALSE(pools.donor());
  uint64_t slots = 0;
  while (!pools.donor()) slots += pools.add_new(1).count;
  EXPECT_EQ(pools.donor(), 1u);
  std::vector<uint32_t> moved = pools.move_half(1, 0);
  EXPECT_EQ(moved.size(), slots / 2);
  EXPECT_EQ(pools.take(0), moved.back());  // They were put one upon the other.
}

}  // namespace
}  // namespace malloscope::replay
