// SPDX-License-Identifier: Apache-2.0
#include "analyze/heap_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "analyze/accounts.h"

namespace malloscope::analyze {
namespace {

using wire::Event;
using wire::Kind;

TEST(Curve, KeepsTheHighestAndLowestPointOfWhateverIsThinnedOut) {
  std::mt19937 random(1);
  for (int round = 0; round < 50; ++round) {
    Curve curve(8);
    std::vector<Curve::Point> all;
    uint64_t tick = random() % 1000;
    for (int i = 0; i < 500; ++i) {
      tick += random() % (1 + (uint64_t{1} << random() % 20));
      all.push_back({tick, random() % 1000, 0});
      curve.add(all.back());
    }
    std::vector<Curve::Point> kept = curve.points();
    EXPECT_LE(kept.size(), 8u * 4);
    EXPECT_TRUE(std::is_sorted(kept.begin(), kept.end(),
                               [](const auto& a, const auto& b) { return a.tick < b.tick; }));
    EXPECT_EQ(kept.front(), all.front());
    EXPECT_EQ(kept.back(), all.back());
    for (const Curve::Point& point : kept)
      EXPECT_NE(std::find(all.begin(), all.end(), point), all.end());
    auto by_bytes = [](const auto& a, const auto& b) { return a.bytes < b.bytes; };
    EXPECT_EQ(std::max_element(kept.begin(), kept.end(), by_bytes)->bytes,
              std::max_element(all.begin(), all.end(), by_bytes)->bytes);
    EXPECT_EQ(std::min_element(kept.begin(), kept.end(), by_bytes)->bytes,
              std::min_element(all.begin(), all.end(), by_bytes)->bytes);
  }
}

// Two images that allocate and free at random, the second of which ends; a model adds up what the
// curve and the details of the tally must say.
struct World {
  explicit World(Window window) : accounts({}, window, {.details = true}), curve(&accounts, 16) {
    for (uint32_t i = 1; i <= 2; ++i) {
      images[i - 1].id = ImageId{i};
      images[i - 1].pid = static_cast<int>(i);
      accounts.image_started(images[i - 1]);
    }
  }

  void show(Event event) {
    if (event.tick > accounts.window().to_tick) return accounts.events({&event, 1});
    bool counts = event.tick >= accounts.window().from_tick;
    uint64_t image = raw(event.image);
    auto key = [&](uint32_t stack) { return std::pair(image, stack); };
    if (counts && !begun) note();
    begun |= counts;
    if (event.kind == Kind::kFree) {
      auto [size, stack] = live[{image, event.address}];
      bytes[key(stack)] -= size, --blocks[key(stack)];
      live.erase({image, event.address});
    } else {
      live[{image, event.address}] = {event.size, raw(event.stack)};
      bytes[key(raw(event.stack))] += event.size, ++blocks[key(raw(event.stack))];
    }
    accounts.events({&event, 1});
    if (counts) note();
  }

  void note() {
    uint64_t sum = 0;
    for (const auto& [key, size] : bytes) {
      if (!(ended && key.first == 2)) sum += size;
      most[key] = std::max(most[key], size);
    }
    if (sum > peak || !begun) {
      peak = sum;
      peak_blocks = blocks;
      if (ended)
        std::erase_if(peak_blocks, [](const auto& entry) { return entry.first.first == 2; });
    }
  }

  using Key = std::pair<uint64_t, uint32_t>;
  trace::Image images[2];
  Accounts accounts;
  HeapCurve curve;
  bool begun = false, ended = false;
  std::map<std::pair<uint64_t, uint64_t>, std::pair<uint64_t, uint32_t>> live;
  std::map<Key, uint64_t> bytes, blocks, most, peak_blocks;
  uint64_t peak = 0;
};

TEST(HeapCurve, AndDetailsAgreeWithAModelInAnyWindow) {
  std::mt19937 random(2);
  for (int round = 0; round < 300; ++round) {
    uint64_t from = round % 3 == 0 ? 0 : 100 + random() % 300;
    World world({from, round % 2 ? UINT64_MAX : from + random() % 400});
    uint64_t tick = 10, end = 200 + random() % 500;
    while (tick < 600) {
      tick += 1 + random() % 4;
      if (!world.ended && tick > end && tick <= world.accounts.window().to_tick) {
        world.images[1].end_tick = tick;
        world.accounts.image_ended(world.images[1]);
        world.ended = true;
      }
      Event event;
      event.tick = tick;
      event.image = ImageId{world.ended ? 1u : 1 + static_cast<uint32_t>(random() % 2)};
      event.address = 16 * (1 + random() % 20);
      event.thread = ThreadId{1};
      event.stack = StackId{1 + static_cast<uint32_t>(random() % 4)};
      event.size = 1 + random() % 100;
      event.kind =
          world.live.contains({raw(event.image), event.address}) ? Kind::kFree : Kind::kAlloc;
      if (event.tick > world.accounts.window().to_tick) break;
      world.show(event);
    }
    world.accounts.finish();
    if (!world.begun) world.note();

    ASSERT_EQ(world.accounts.peak().bytes, world.peak);
    std::vector<Curve::Point> points = world.curve.of_all();
    uint64_t highest = 0;
    for (const Curve::Point& point : points) highest = std::max(highest, point.bytes);
    EXPECT_EQ(highest, world.peak) << "round " << round;
    uint64_t shares = 0;
    world.accounts.tally().for_each_row([&](const Row& row) {
      World::Key key = {raw(row.image), raw(row.stack)};
      EXPECT_EQ(row.details.most_bytes, std::max(world.most[key], row.amounts.live_bytes)) << round;
      EXPECT_EQ(row.details.peak_blocks, world.peak_blocks[key]) << round;
      shares += row.amounts.peak_bytes;
    });
    EXPECT_EQ(shares, world.peak);
  }
}

}  // namespace
}  // namespace malloscope::analyze
