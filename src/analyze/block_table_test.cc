// SPDX-License-Identifier: Apache-2.0
#include "analyze/block_table.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace malloscope::analyze {
namespace {

// Few addresses in few places: long probes, wrap-around and erasing in their middle come up often.
TEST(BlockTable, HoldsWhatAMapHolds) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    BlockTable table;
    std::map<uint64_t, uint64_t> map;
    uint64_t addresses = 1 + random() % 200;
    for (int i = 0; i < 1'000; ++i) {
      uint64_t address = (1 + random() % addresses) * 16;
      Block* found = table.find(address);
      ASSERT_EQ(found != nullptr, map.contains(address));
      if (found) {
        ASSERT_EQ(found->size, map[address]);
        table.erase(found);
        map.erase(address);
      } else {
        uint64_t size = random() % Block::kMostSize;
        Block block;
        block.address = address;
        block.size = size & Block::kMostSize;
        table.insert(block);
        map[address] = size;
      }
      ASSERT_EQ(table.size(), map.size());
    }
    for (uint64_t a = 1; a <= addresses; ++a)
      ASSERT_EQ(table.find(a * 16) != nullptr, map.contains(a * 16));
  }
}

TEST(BlockTable, IsEmptyBeforeAndAfter) {
  BlockTable table;
  table.prefetch_place(16);
  table.prefetch_block(16);
  EXPECT_EQ(table.find(16), nullptr);
  Block block;
  block.address = 16;
  table.insert(block);
  table.clear();
  EXPECT_EQ(table.find(16), nullptr);
  EXPECT_EQ(table.size(), 0u);
}

}  // namespace
}  // namespace malloscope::analyze
