// SPDX-License-Identifier: Apache-2.0
// Threads hand blocks to each other; some of what they do with them is then moved before the birth
// of the block, and has to be put right.

#include "replay/untangle.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace malloscope::replay {
namespace {

using wire::Event;
using wire::Kind;

// Performs what it can, and keeps what was done in which order.
struct Heap {
  std::map<uint64_t, int> live;
  std::vector<Event> done;
  uint64_t in_vain = 0;

  bool perform(const Event& event, bool anyway) {
    if (event.kind == Kind::kFree && live[event.address] == 0) {
      if (!anyway) return false;
      ++in_vain;
    } else {
      live[event.address] += event.kind == Kind::kFree ? -1 : 1;
    }
    done.push_back(event);
    return true;
  }
};

// `size` tells events apart.
Event event_of(uint64_t tick, uint32_t thread, Kind kind, uint64_t address, uint64_t size = 0) {
  Event event;
  event.tick = tick;
  event.thread = ThreadId{thread};
  event.kind = kind;
  event.address = address;
  event.size = size;
  return event;
}

std::vector<uint64_t> of_thread(const std::vector<Event>& events, uint32_t thread) {
  std::vector<uint64_t> numbers;
  for (const Event& event : events)
    if (event.thread == ThreadId{thread}) numbers.push_back(event.size);
  return numbers;
}

TEST(Untangler, FindsThePossibleOrder) {
  constexpr uint32_t kThreads = 4;
  uint64_t put_right = 0;
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    std::vector<Event> events;
    std::vector<uint64_t> live;
    for (uint64_t i = 0; i < 2000; ++i) {
      auto thread = static_cast<uint32_t>(1 + random() % kThreads);
      bool makes = live.size() < 5 || random() % 2 == 0;
      uint64_t address = 16 * (i + 1);
      if (!makes) {
        std::swap(live[random() % live.size()], live.back());
        address = live.back();
        live.pop_back();
      } else {
        live.push_back(address);
      }
      events.push_back(event_of(10 * i, thread, makes ? Kind::kAlloc : Kind::kFree, address, i));
    }
    // A clock that is behind: all that a thread did for some time seems to be a little earlier.
    for (Event& event : events)
      if (event.thread == ThreadId{2}) event.tick -= std::min<uint64_t>(event.tick, 40);
    std::ranges::stable_sort(events, {}, &Event::tick);

    Heap heap;
    Untangler untangler([&](const Event& e, bool anyway) { return heap.perform(e, anyway); });
    for (const Event& event : events) untangler.add(event);
    untangler.flush();
    EXPECT_EQ(heap.in_vain, 0u) << seed;
    ASSERT_EQ(heap.done.size(), events.size());
    for (uint32_t thread = 1; thread <= kThreads; ++thread)
      EXPECT_EQ(of_thread(heap.done, thread), of_thread(events, thread)) << seed;
    put_right += untangler.put_right();
  }
  EXPECT_GT(put_right, 100u);
}

TEST(Untangler, WaitsForNobodyInVain) {
  Heap heap;
  Untangler untangler([&](const Event& e, bool anyway) { return heap.perform(e, anyway); });
  uint64_t late = 10 + Untangler::kWindow + 1;
  untangler.add(event_of(10, 1, Kind::kFree, 16, 0));
  untangler.add(event_of(11, 1, Kind::kAlloc, 16, 1));  // Its own: that is another block.
  untangler.add(event_of(12, 2, Kind::kAlloc, 32, 2));
  EXPECT_EQ(heap.done.size(), 1u);
  untangler.add(event_of(late, 2, Kind::kAlloc, 48, 3));
  EXPECT_EQ(heap.done.size(), 4u);
  EXPECT_EQ(heap.in_vain, 1u);
  // At the end nothing is left.
  untangler.add(event_of(late + 1, 2, Kind::kFree, 64, 4));
  untangler.add(event_of(late + 2, 2, Kind::kFree, 80, 5));
  untangler.flush();
  EXPECT_EQ(heap.done.size(), 6u);
  EXPECT_EQ(heap.in_vain, 3u);
  EXPECT_EQ(untangler.put_right(), 0u);
}

TEST(Untangler, TwoThreadsThatWaitForEachOtherGoOn) {
  Heap heap;
  Untangler untangler([&](const Event& e, bool anyway) { return heap.perform(e, anyway); });
  untangler.add(event_of(10, 1, Kind::kFree, 16, 0));
  untangler.add(event_of(11, 2, Kind::kFree, 32, 1));
  untangler.add(event_of(12, 1, Kind::kAlloc, 32, 2));
  untangler.add(event_of(13, 2, Kind::kAlloc, 16, 3));
  untangler.flush();
  EXPECT_EQ(heap.done.size(), 4u);
  EXPECT_EQ(heap.in_vain, 1u);
}

}  // namespace
}  // namespace malloscope::replay
