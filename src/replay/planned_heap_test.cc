// SPDX-License-Identifier: Apache-2.0
#include "replay/planned_heap.h"

#include <gtest/gtest.h>

namespace malloscope::replay {
namespace {

using wire::Event;
using wire::Kind;

Event event_of(Kind kind, uint64_t address, uint64_t size = 0) {
  Event event;
  event.kind = kind;
  event.thread = ThreadId{1};
  event.address = address;
  event.size = size;
  return event;
}

std::vector<uint64_t> sizes(const WatchedHeap& heap) {
  std::vector<uint64_t> sizes;
  for (const PlannedBlock& block : heap.by_birth()) sizes.push_back(block.size);
  return sizes;
}
using Sizes = std::vector<uint64_t>;

TEST(PlannedBlocks, AtOneAddressAreTakenInTheOrderOfTheirBirth) {
  PlannedBlocks blocks;
  for (uint64_t size : {1, 2, 3})
    EXPECT_EQ(blocks.put({.address = 16, .size = size}, 10), size == 1);
  for (uint64_t size : {1, 2, 3}) EXPECT_EQ(blocks.take(16)->size, size);
  EXPECT_FALSE(blocks.take(16));
}

TEST(PlannedBlocks, EndWithoutAFreeThatDoesNotCome) {
  PlannedBlocks blocks;
  std::vector<uint64_t> ended;
  auto end = [&](const PlannedBlock& block) { ended.push_back(block.size); };
  blocks.put({.address = 16, .size = 1}, 1000);
  blocks.put({.address = 16, .size = 2}, 2000);
  blocks.put({.address = 16, .size = 3}, 2050);
  EXPECT_EQ(blocks.take(16)->size, 1u);
  blocks.end_overdue(2000 + Untangler::kWindow + 1, end);
  EXPECT_TRUE(ended.empty());
  blocks.end_overdue(2050 + Untangler::kWindow + 1, end);
  EXPECT_EQ(ended, std::vector<uint64_t>{2});
  EXPECT_EQ(blocks.take(16)->size, 3u);
  EXPECT_FALSE(blocks.take(16));
}

TEST(WatchedHeap, HoldsWhatIsLive) {
  WatchedHeap heap;
  heap.watch(event_of(Kind::kAlloc, 32, 1));
  heap.watch(event_of(Kind::kAlloc, 16, 2));
  heap.watch(event_of(Kind::kAlloc, 48, 3));
  heap.watch(event_of(Kind::kFree, 16));
  EXPECT_EQ(sizes(heap), (Sizes{1, 3}));
  // A realloc that moves it, one that fails, and one that frees.
  heap.watch(event_of(Kind::kReallocBegin, 32));
  heap.watch(event_of(Kind::kReallocEnd, 64, 4));
  EXPECT_FALSE(heap.is_live(32));
  EXPECT_EQ(sizes(heap), (Sizes{3, 4}));
  heap.watch(event_of(Kind::kReallocBegin, 64));
  heap.watch(event_of(Kind::kReallocEnd, 0, 100));
  EXPECT_EQ(sizes(heap), (Sizes{3, 4}));
  heap.watch(event_of(Kind::kReallocBegin, 64));
  heap.watch(event_of(Kind::kReallocEnd, 0, 0));
  EXPECT_EQ(sizes(heap), (Sizes{3}));
}

TEST(WatchedHeap, FreesTheOlderOfTwoBlocksAtOneAddress) {
  WatchedHeap heap;
  heap.watch(event_of(Kind::kAlloc, 16, 1));
  heap.watch(event_of(Kind::kAlloc, 16, 2));
  heap.watch(event_of(Kind::kFree, 16));
  EXPECT_EQ(sizes(heap), (Sizes{2}));
}

TEST(WatchedHeap, IsInherited) {
  WatchedHeap parent, child;
  parent.watch(event_of(Kind::kAlloc, 16, 1));
  child.inherit(parent);
  child.watch(event_of(Kind::kAlloc, 32, 2));
  parent.watch(event_of(Kind::kFree, 16));
  EXPECT_EQ(sizes(child), (Sizes{1, 2}));
}

}  // namespace
}  // namespace malloscope::replay
