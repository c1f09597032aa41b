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
  for (uint64_t size : {1, 2, 3}) EXPECT_EQ(blocks.put({.address = 16, .size = size}), size == 1);
  for (uint64_t size : {1, 2, 3}) EXPECT_EQ(blocks.take(16)->size, size);
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
