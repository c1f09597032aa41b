// SPDX-License-Identifier: Apache-2.0
#include "analyze/window_curve.h"

#include <gtest/gtest.h>

#include <random>

namespace malloscope::analyze {
namespace {

struct Events {
  Heap heap;
  trace::Image image;

  explicit Events(WindowCurve* curve) {
    heap.add_observer(curve);
    image.id = ImageId{1};
    heap.image_started(image);
  }
  void call(wire::Kind kind, uint64_t tick, uint64_t address, uint64_t size = 0) {
    wire::Event e;
    e.kind = kind;
    e.op = kind == wire::Kind::kAlloc ? wire::Op::kMalloc : wire::Op::kFree;
    e.image = image.id;
    e.tick = tick;
    e.address = address;
    e.size = size;
    e.thread = ThreadId{1};
    heap.events({&e, 1});
  }
  // A second process, of which nothing is told yet.
  void start_another() {
    trace::Image other = image;
    other.id = ImageId{2};
    heap.image_started(other);
  }
  void end_first(uint64_t tick) {
    trace::Image first;
    first.id = ImageId{1};
    first.end_tick = tick;
    heap.image_ended(first);
  }
};

TEST(WindowCurve, HasTheHighestMomentOfEachSlice) {
  WindowCurve curve(100, 200, 10, {});
  Events events(&curve);
  events.call(wire::Kind::kAlloc, 90, 0x10, 1000);
  events.call(wire::Kind::kAlloc, 100, 0x20, 10);  // The tick that the window is behind.
  events.call(wire::Kind::kAlloc, 101, 0x30, 500);
  events.call(wire::Kind::kFree, 102, 0x30);
  events.call(wire::Kind::kFree, 110, 0x20);  // Still the first slice.
  events.call(wire::Kind::kAlloc, 111, 0x40, 7);
  events.call(wire::Kind::kFree, 195, 0x10);
  events.heap.finish();
  const std::vector<WholeSlice>& slices = curve.finish();
  ASSERT_EQ(slices.size(), 10u);
  EXPECT_EQ(curve.edge(0), 100u);
  EXPECT_EQ(curve.edge(10), 200u);
  EXPECT_EQ(slices[0].live_max, 1510u);
  EXPECT_EQ(slices[0].live_bytes, 1000u);
  EXPECT_EQ(slices[0].allocations, 1u);
  EXPECT_EQ(slices[0].allocated_bytes, 500u);
  EXPECT_EQ(slices[0].frees, 2u);
  EXPECT_EQ(slices[1].live_max, 1007u);
  EXPECT_EQ(slices[1].live_blocks, 2u);
  EXPECT_EQ(slices[5].live_max, 1007u);
  EXPECT_EQ(slices[9].live_max, 1007u);
  EXPECT_EQ(slices[9].live_bytes, 7u);
}

TEST(WindowCurve, WhatTheLastProcessLeavesStaysAndThatOfOthersGoes) {
  WindowCurve curve(0, 100, 4, {});
  Events events(&curve);
  trace::Image other = events.image;
  other.id = ImageId{2};
  events.heap.image_started(other);
  events.call(wire::Kind::kAlloc, 10, 0x10, 1000);
  events.image.id = ImageId{2};
  events.call(wire::Kind::kAlloc, 30, 0x10, 300);
  trace::Image first;
  first.id = ImageId{1};
  first.end_tick = 40;
  events.heap.image_ended(first);
  events.call(wire::Kind::kAlloc, 60, 0x20, 1);
  other.end_tick = 70;
  events.heap.image_ended(other);
  events.heap.finish();
  const std::vector<WholeSlice>& slices = curve.finish();
  EXPECT_EQ(slices[0].live_max, 1000u);
  EXPECT_EQ(slices[1].live_max, 1300u);
  EXPECT_EQ(slices[2].live_max, 301u);
  EXPECT_EQ(slices[3].live_max, 301u);
  EXPECT_EQ(slices[0].running_blocks, 1u);
  EXPECT_EQ(slices[1].running_blocks, 1u);
  EXPECT_EQ(slices[2].running_blocks, 2u);
  EXPECT_EQ(slices[3].running_blocks, 2u);
  EXPECT_EQ(slices[3].live_blocks, 3u);
}

// What was told of as the last thing is there until it ends, or the window does.
TEST(WindowCurve, KeepsWhatAProcessHasUntilItsEnd) {
  for (uint64_t end : {80, 120}) {
    WindowCurve curve(0, 100, 4, {}, {end, std::nullopt});
    Events events(&curve);
    events.start_another();
    events.call(wire::Kind::kAlloc, 10, 0x10, 1000);
    events.end_first(end);
    events.heap.finish();
    const std::vector<WholeSlice>& slices = curve.finish();
    EXPECT_EQ(slices[2].running_blocks, 1u);
    EXPECT_EQ(slices[3].live_max, 1000u);
    EXPECT_EQ(slices[3].running_blocks, end == 80 ? 0u : 1u);
  }
}

// An end was told before whatever comes at its tick.
TEST(WindowCurve, HasNothingOfAProcessAtTheTickOfItsEnd) {
  WindowCurve curve(0, 100, 4, {}, {90, std::nullopt});
  Events events(&curve);
  events.start_another();
  events.call(wire::Kind::kAlloc, 10, 0x10, 1000);
  events.end_first(90);
  events.image.id = ImageId{2};
  events.call(wire::Kind::kAlloc, 90, 0x20, 300);
  events.call(wire::Kind::kAlloc, 95, 0x30, 10);
  events.heap.finish();
  const std::vector<WholeSlice>& slices = curve.finish();
  EXPECT_EQ(slices[3].live_max, 1000u);
  EXPECT_EQ(slices[3].running_blocks, 2u);
}

// Whatever the slices, they add up to what happened, and the highest of all is the heap's peak.
TEST(WindowCurve, AddsUp) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    auto slices = static_cast<uint32_t>(1 + random() % 300);
    WindowCurve curve(0, 1000, slices, {});
    Events events(&curve);
    std::vector<uint64_t> live;
    uint64_t next = 0x1000, tick = 1;
    for (int i = 0; i < 500; ++i, tick += random() % 3) {
      if (live.empty() || random() % 5 < 3) {
        live.push_back(next += 16);
        events.call(wire::Kind::kAlloc, tick, next, random() % 5000);
      } else {
        events.call(wire::Kind::kFree, tick, live.back());
        live.pop_back();
      }
    }
    events.heap.finish();
    Totals totals = events.heap.totals();
    uint64_t allocations = 0, frees = 0, most = 0;
    const std::vector<WholeSlice>& found = curve.finish();
    for (const WholeSlice& slice : found) {
      allocations += slice.allocations;
      frees += slice.frees;
      most = std::max(most, slice.live_max);
    }
    EXPECT_EQ(allocations, totals.allocations);
    EXPECT_EQ(frees, totals.frees);
    EXPECT_EQ(most, events.heap.peak().bytes);
    EXPECT_EQ(found.back().live_bytes, totals.live_bytes);
    EXPECT_EQ(found.back().live_blocks, totals.live_blocks);
  }
}

}  // namespace
}  // namespace malloscope::analyze
