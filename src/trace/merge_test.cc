// SPDX-License-Identifier: Apache-2.0
// Threads hand blocks to each other at random while a clock ticks slowly, so that
// many events share a tick; what each thread saw is given to the merger, which
// must find an order in which no address is live twice.

#include "trace/merge.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace malloscope::trace {
namespace {

using wire::Event;
using wire::Kind;

struct Judge : Listener {
  std::set<uint64_t> live;
  size_t shown = 0, violations = 0;
  std::vector<uint64_t> last_tick = std::vector<uint64_t>(16);
  std::vector<size_t> ended_after;

  void events(std::span<const Event> batch) override {
    for (const Event& e : batch) {
      ++shown;
      bool makes = e.kind == Kind::kAlloc;
      if (live.contains(e.address) == makes) ++violations;
      if (makes)
        live.insert(e.address);
      else
        live.erase(e.address);
      EXPECT_GE(e.tick, last_tick[raw(e.thread)]) << "a thread's events keep their order";
      last_tick[raw(e.thread)] = e.tick;
    }
  }
  void image_ended(const Image&) override { ended_after.push_back(shown); }
  bool is_live(ImageId, uint64_t address) override { return live.contains(address); }
};

Event event(Kind kind, uint32_t thread, uint64_t address, uint64_t tick) {
  Event e;
  e.kind = kind;
  e.thread = ThreadId{thread};
  e.image = ImageId{1};
  e.address = address;
  e.tick = tick;
  return e;
}

TEST(EpochMerger, FindsAnOrderWheneverThereIsOne) {
  std::mt19937 random(1);
  for (int world = 0; world < 300; ++world) {
    size_t threads = 2 + random() % 4;
    std::vector<std::vector<Event>> seen(threads);
    std::set<uint64_t> live;
    uint64_t tick = 100;
    for (int i = 0; i < 400; ++i) {
      // On average six events a tick, over four addresses: far worse than any program.
      if (random() % 6 == 0) ++tick;
      uint32_t thread = static_cast<uint32_t>(random() % threads);
      uint64_t address = 16 * (1 + random() % 4);
      bool makes = !live.contains(address);
      seen[thread].push_back(event(makes ? Kind::kAlloc : Kind::kFree, thread + 1, address, tick));
      if (makes)
        live.insert(address);
      else
        live.erase(address);
    }
    Judge judge;
    EpochMerger merger(&judge);
    // In two parts, as of an epoch that is decoded bit by bit.
    uint64_t middle = random() % 3 == 0 ? 0 : 100 + random() % 70;
    std::vector<std::vector<Event>> parts[2];
    for (auto& part : parts) part.resize(threads);
    for (size_t i = 0; i < threads; ++i)
      for (const Event& e : seen[i]) parts[e.tick >= middle][i].push_back(e);
    uint32_t left = 0;
    for (size_t i = 0; i < threads; ++i) merger.add(parts[0][i], i, &left);
    merger.merge_before(middle);
    ASSERT_EQ(left, 0u);
    for (size_t i = 0; i < threads; ++i) merger.add(parts[1][i], i, &left);
    merger.merge();
    ASSERT_EQ(left, 0u);
    ASSERT_EQ(judge.shown, 400u);
    ASSERT_EQ(judge.violations, 0u) << "in world " << world;
    ASSERT_EQ(judge.live, live);
  }
}

TEST(EpochMerger, TellsOfAnEndBetweenTheEventsAroundIt) {
  std::vector<Event> events;
  for (uint64_t i = 1; i <= 10; ++i) events.push_back(event(Kind::kAlloc, 1, i * 16, i * 10));
  Image image;
  Judge judge;
  EpochMerger merger(&judge);
  merger.add(events, 0);
  merger.add_end(55, &image);
  merger.add_end(50, &image);
  merger.add_end(1000, &image);
  merger.merge();
  EXPECT_EQ(judge.ended_after, (std::vector<size_t>{5, 5, 10}));
}

}  // namespace
}  // namespace malloscope::trace
