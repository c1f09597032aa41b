// SPDX-License-Identifier: Apache-2.0
// Random mmap, munmap and mremap, beside a model that knows the owner of every page.
#include "analyze/mapped_ranges.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace malloscope::analyze {
namespace {

constexpr uint64_t kPage = 4096;

wire::Event call(wire::Op op, uint64_t address, uint64_t size, uint32_t stack = 1,
                 uint64_t other = 0, uint8_t flags = 0) {
  wire::Event event;
  event.kind = wire::Kind::kMapping;
  event.op = op;
  event.address = address;
  event.size = size;
  event.stack = StackId{stack};
  event.other = other;
  event.flags = flags;
  return event;
}

std::map<uint64_t, uint32_t> pages_of(const MappedRanges& ranges) {
  std::map<uint64_t, uint32_t> pages;
  uint64_t last_end = 0;
  ranges.for_each([&](const MappedRange& range) {
    EXPECT_LT(range.begin, range.end);
    EXPECT_GE(range.begin, last_end);
    last_end = range.end;
    for (uint64_t p = range.begin; p < range.end; p += kPage) pages[p] = raw(range.stack);
  });
  return pages;
}

TEST(MappedRanges, AgreesWithAModelOfPages) {
  std::mt19937 random(3);
  MappedRanges ranges;
  std::map<uint64_t, uint32_t> model;
  for (uint32_t i = 1; i <= 5000; ++i) {
    uint64_t begin = (1 + random() % 60) * kPage, size = 1 + random() % (8 * kPage);
    uint64_t end = (begin + size + kPage - 1) / kPage * kPage;
    uint8_t flags = random() % 10 == 0 ? wire::kFailed : 0;
    if (random() % 2) {
      ranges.apply(call(wire::Op::kMmap, begin, size, i, 0, flags));
      for (uint64_t p = begin; !flags && p < end; p += kPage) model[p] = i;
    } else {
      ranges.apply(call(wire::Op::kMunmap, begin, size, i, 0, flags));
      for (uint64_t p = begin; !flags && p < end; p += kPage) model.erase(p);
    }
    ASSERT_EQ(pages_of(ranges), model) << "after call " << i;
    ASSERT_EQ(ranges.bytes(), model.size() * kPage);
  }
}

TEST(MappedRanges, MovesGrowsAndShrinks) {
  MappedRanges ranges;
  ranges.apply(call(wire::Op::kMmap, 16 * kPage, 4 * kPage, 1));
  ranges.apply(call(wire::Op::kMremap, 16 * kPage, 6 * kPage, 2, 16 * kPage));
  EXPECT_EQ(ranges.bytes(), 6 * kPage);
  ranges.apply(call(wire::Op::kMremap, 64 * kPage, 8 * kPage, 3, 16 * kPage));
  EXPECT_EQ(ranges.bytes(), 8 * kPage);
  EXPECT_EQ(pages_of(ranges).begin()->first, 64 * kPage);
  EXPECT_EQ(pages_of(ranges).begin()->second, 3u);
  ranges.apply(call(wire::Op::kMremap, 64 * kPage, 1, 4, 64 * kPage));
  EXPECT_EQ(ranges.bytes(), kPage);
}

TEST(MappedRanges, FollowsTheBreakBothWays) {
  MappedRanges ranges;
  ranges.apply(call(wire::Op::kSbrk, 100 * kPage, 3 * kPage));
  EXPECT_EQ(ranges.bytes(), 3 * kPage);
  ranges.apply(call(wire::Op::kSbrk, 103 * kPage, uint64_t{0} - 2 * kPage));
  EXPECT_EQ(ranges.bytes(), kPage);
  ranges.apply(call(wire::Op::kBrk, 105 * kPage, 0));
  EXPECT_EQ(ranges.bytes(), 5 * kPage);
  ranges.apply(call(wire::Op::kBrk, 100 * kPage, 0));
  EXPECT_EQ(ranges.bytes(), 0u);
}

TEST(MappedRanges, KeepsTheAllocatorsApartAndBearsNonsense) {
  MappedRanges ranges;
  ranges.apply(call(wire::Op::kMmap, kPage, kPage, 1, 0, wire::kInsideAllocator));
  ranges.apply(call(wire::Op::kMmap, 4 * kPage, kPage, 1));
  EXPECT_EQ(ranges.allocator_bytes(), kPage);
  EXPECT_EQ(ranges.bytes(), 2 * kPage);
  ranges.apply(call(wire::Op::kMmap, UINT64_MAX - 5, UINT64_MAX));
  ranges.apply(call(wire::Op::kMunmap, 0, UINT64_MAX));
  ranges.apply(call(wire::Op::kSbrk, UINT64_MAX, UINT64_MAX / 2));
  ranges.apply(call(wire::Op::kBrk, UINT64_MAX, 0));
  pages_of(MappedRanges());
}

}  // namespace
}  // namespace malloscope::analyze
