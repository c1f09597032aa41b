// SPDX-License-Identifier: Apache-2.0
// However few bars there may be, they stand for all blocks and bytes, and each covers the lives of
// those that it stands for.

#include "analyze/site_blocks.h"

#include <gtest/gtest.h>

#include "analyze/made_up_for_test.h"

namespace malloscope::analyze {
namespace {

std::vector<BlockBar> bars_of(const ToyRecording& toy, size_t most, uint64_t* blocks,
                              StackId only = StackId::kNone) {
  SiteBlocks seen(
      [only](ImageId, const Block& block) { return only == StackId::kNone || block.stack == only; },
      most);
  Heap heap;
  heap.add_observer(&seen);
  heap.image_started(toy.tables.images[0]);
  heap.events(toy.events);
  heap.image_ended(toy.tables.images[0]);
  heap.finish();
  *blocks = seen.blocks();
  return seen.take();
}

struct Sums {
  uint64_t blocks = 0, bytes = 0, alive = 0;
  bool operator==(const Sums&) const = default;
};
Sums sums_of(const std::vector<BlockBar>& bars) {
  Sums sums;
  for (const BlockBar& bar : bars) {
    sums.blocks += bar.blocks;
    sums.bytes += bar.bytes;
    if (bar.died == BlockBar::kAlive) sums.alive += bar.blocks;
  }
  return sums;
}

TEST(SiteBlocks, StandForAllBlocksHoweverFew) {
  for (unsigned seed = 1; seed <= 4; ++seed) {
    ToyRecording toy(seed, 20'000);
    auto reading = toy.read();
    Totals totals = reading->accounts().totals();
    uint64_t blocks = 0;
    std::vector<BlockBar> all = bars_of(toy, 1'000'000, &blocks);
    EXPECT_EQ(all.size(), blocks);
    // A realloc ends a bar and begins another.
    EXPECT_EQ(blocks, totals.allocations + totals.reallocations);
    EXPECT_EQ(sums_of(all).alive, totals.live_blocks);
    for (size_t most : {400u, 2'000u}) {
      uint64_t same = 0;
      std::vector<BlockBar> few = bars_of(toy, most, &same);
      EXPECT_EQ(same, blocks);
      EXPECT_LE(few.size(), most);
      EXPECT_EQ(sums_of(few), sums_of(all));
      for (size_t i = 0; i < few.size(); ++i) {
        EXPECT_LE(few[i].born, few[i].died);
        EXPECT_GT(few[i].blocks, 0u);
        if (i > 0) {
          EXPECT_LE(few[i - 1].born, few[i].born);
        }
      }
    }
  }
}

TEST(SiteBlocks, AreThoseOfTheStack) {
  ToyRecording toy(7, 5'000);
  auto reading = toy.read();
  reading->for_each_row([&](const Row& row) {
    uint64_t blocks = 0;
    std::vector<BlockBar> bars = bars_of(toy, 100'000, &blocks, row.stack);
    EXPECT_EQ(blocks, row.amounts.allocations + row.amounts.reallocations);
    EXPECT_EQ(sums_of(bars).alive, row.amounts.live_blocks);
  });
}

}  // namespace
}  // namespace malloscope::analyze
