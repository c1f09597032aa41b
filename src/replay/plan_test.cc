// SPDX-License-Identifier: Apache-2.0
// Threads that allocate, free, reallocate and hand blocks over at random are planned, and the
// workload is performed by a machine that knows nothing of the planner: it checks what a race
// detector would, that every use of a slot is ordered after the use before.

#include "replay/plan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <random>

#include "replay/reader.h"
#include "replay/statistics.h"
#include "replay/untangle.h"
#include "replay/writer.h"

namespace malloscope::replay {
namespace {

using wire::Event;
using wire::Kind;

struct Recording {
  std::mt19937 random;
  std::vector<Event> events;
  // What each thread asked for, in order.
  std::map<uint32_t, std::vector<std::pair<CallGroup, uint64_t>>> asked;
  uint64_t peak = 0;
  std::vector<trace::Image> children;

  Recording(unsigned seed, uint32_t threads, int count, double handing_over = 0.5) : random(seed) {
    struct Live {
      uint64_t address, size;
      uint32_t owner;
    };
    std::vector<Live> live;
    uint64_t tick = 100, next = 0x1000, sum = 0;
    std::vector<uint64_t> free_addresses;
    auto fresh = [&] {
      // Addresses come back, as an allocator's do.
      if (!free_addresses.empty() && random() % 4 != 0) {
        uint64_t address = free_addresses.back();
        free_addresses.pop_back();
        return address;
      }
      return next += 16;
    };
    auto add = [&](uint32_t thread, Kind kind, wire::Op op, uint64_t address, uint64_t size) {
      Event event;
      event.tick = tick;
      event.kind = kind;
      event.op = op;
      event.address = address;
      event.size = size;
      event.thread = ThreadId{thread};
      event.image = ImageId{1};
      events.push_back(event);
    };
    for (int i = 0; i < count; ++i) {
      tick += random() % 50;
      // Threads begin one after the other, and the second half of them ends early.
      uint32_t alive = 1 + static_cast<uint32_t>(
                               std::min<int64_t>(threads - 1, int64_t{i} * 4 * threads / count));
      uint32_t thread = 1 + static_cast<uint32_t>(random() % alive);
      if (i > count / 2) thread = 1 + (thread - 1) % (threads / 2 + 1);
      auto what = random() % 100;
      if (what < 45 || live.empty()) {
        uint64_t size = random() % 1000, address = fresh();
        static constexpr wire::Op kOps[] = {wire::Op::kMalloc, wire::Op::kCalloc, wire::Op::kNew,
                                            wire::Op::kPosixMemalign, wire::Op::kMemalign};
        wire::Op op = kOps[random() % 5];
        add(thread, Kind::kAlloc, op, address, size);
        CallGroup group = op == wire::Op::kCalloc                           ? CallGroup::kCalloc
                          : op == wire::Op::kMalloc || op == wire::Op::kNew ? CallGroup::kMalloc
                                                                            : CallGroup::kMemalign;
        asked[thread].emplace_back(group, size);
        live.push_back({address, size, thread});
        sum += size;
      } else if (what < 50) {
        add(thread, Kind::kFree, wire::Op::kFree, 0, 0);
        asked[thread].emplace_back(CallGroup::kFree, 0);
      } else {
        size_t at = random() % live.size();
        if (std::uniform_real_distribution<>()(random) > handing_over) thread = live[at].owner;
        if (i > count / 2) thread = 1 + (thread - 1) % (threads / 2 + 1);
        Live block = live[at];
        if (what < 60) {
          add(thread, Kind::kReallocBegin, wire::Op::kRealloc, block.address, 0);
          if (what < 58) {
            uint64_t size = 1 + random() % 3000;
            uint64_t address = random() % 2 ? block.address : fresh();
            if (address != block.address) free_addresses.push_back(block.address);
            add(thread, Kind::kReallocEnd, wire::Op::kRealloc, address, size);
            asked[thread].emplace_back(CallGroup::kRealloc, size);
            sum += size - block.size;
            live[at] = {address, size, thread};
          } else {  // It failed.
            add(thread, Kind::kReallocEnd, wire::Op::kRealloc, 0, 100);
          }
        } else {
          add(thread, Kind::kFree, wire::Op::kFree, block.address, 0);
          asked[thread].emplace_back(CallGroup::kFree, 0);
          free_addresses.push_back(block.address);
          sum -= block.size;
          live[at] = live.back();
          live.pop_back();
        }
      }
      peak = std::max(peak, sum);
    }
  }

  Survey survey() const {
    Survey survey;
    survey.add(events);
    survey.tables.header.ns_per_tick = 100;
    trace::Image image;
    image.id = ImageId{1};
    survey.tables.images.push_back(std::move(image));
    for (const trace::Image& child : children) survey.tables.images.push_back(child);
    return survey;
  }
};

// A file that is gone with the test.
struct Planned {
  std::string path = testing::TempDir() + "malloscope-plan-" + std::to_string(getpid());
  FileTail tail;
  ~Planned() { unlink(path.c_str()); }

  Planned(const Recording& recording, PlanOptions options = {}) {
    if (options.image == ImageId::kNone) options.image = ImageId{1};
    Survey survey = recording.survey();
    int fd = open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0600);
    auto made = planner(survey, options, fd, path);
    for (const trace::Image& image : survey.tables.images) made->image_started(image);
    made->events(recording.events);
    Result<FileTail> done = made->finish();
    EXPECT_TRUE(done) << done.error().sentence;
    if (done) tail = *done;
  }

  std::map<uint32_t, std::vector<Op>> tracks() const {
    std::map<uint32_t, std::vector<Op>> tracks;
    Result<WorkloadReader> reader = WorkloadReader::open(path);
    EXPECT_TRUE(reader) << reader.error().sentence;
    if (!reader) return tracks;
    Result<void> read =
        reader->read([&](uint32_t track, const Op& op) { tracks[track].push_back(op); });
    EXPECT_TRUE(read) << read.error().sentence;
    return tracks;
  }
};

// Performs the tracks in any order that the waits allow. Every track has an exact vector clock.
struct Machine {
  using Clock = std::vector<uint64_t>;
  struct Slot {
    bool live = false;
    uint32_t track = 0;
    uint64_t done = 0;  // By whom, and after which operation, it was used last.
  };
  std::map<uint32_t, std::vector<Op>> tracks;
  std::vector<Slot> slots;
  std::vector<uint64_t> done;
  std::vector<Clock> now;
  std::vector<std::vector<Clock>> after;  // Of each track, after each operation.
  uint64_t waits = 0, needless = 0;

  bool run(unsigned seed) {
    std::mt19937 random(seed);
    size_t count = tracks.size();
    done.assign(count, 0);
    now.assign(count, Clock(count));
    after.assign(count, {Clock(count)});
    for (;;) {
      std::vector<uint32_t> ready;
      for (uint32_t i = 0; i < count; ++i) {
        if (done[i] == tracks[i].size()) continue;
        const Op& op = tracks[i][done[i]];
        if (op.kind != OpKind::kWait || done[op.track] >= op.size) ready.push_back(i);
      }
      if (ready.empty()) break;
      uint32_t track = ready[random() % ready.size()];
      // Some way, so that tracks get far apart.
      for (uint64_t steps = 1 + random() % 200; steps > 0 && done[track] < tracks[track].size();
           --steps) {
        const Op& op = tracks[track][done[track]];
        if (op.kind == OpKind::kWait && done[op.track] < op.size) break;
        if (!perform(track, op)) return false;
      }
    }
    for (uint32_t i = 0; i < count; ++i)
      if (done[i] != tracks[i].size()) return false;  // They wait for each other.
    return true;
  }

  bool perform(uint32_t track, const Op& op) {
    Clock& clock = now[track];
    ++done[track];
    if (op.kind == OpKind::kWait) {
      ++waits;
      needless += clock[op.track] >= op.size;
      const Clock& theirs = after[op.track][op.size];
      for (size_t i = 0; i < clock.size(); ++i) clock[i] = std::max(clock[i], theirs[i]);
    }
    clock[track] = done[track];
    after[track].push_back(clock);
    if (!is_call(op.kind) || op.kind == OpKind::kFreeNull) return true;
    if (op.slot >= slots.size()) return false;
    Slot& slot = slots[op.slot];
    if (slot.track != track && clock[slot.track] < slot.done) return false;  // A race.
    bool makes = makes_block(op.kind) || op.fresh;
    if (slot.live == makes) return false;
    slot = {op.kind != OpKind::kFree && op.kind != OpKind::kReallocToFree, track, done[track]};
    return true;
  }
};

class Plan : public testing::TestWithParam<unsigned> {};

TEST_P(Plan, OrdersEveryUseOfABlock) {
  unsigned seed = GetParam();
  uint32_t threads = 1 + seed % 9;
  Recording recording(seed, threads, 20'000, seed % 3 * 0.4);
  Planned planned(recording);
  Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
  EXPECT_TRUE(machine.run(seed)) << "seed " << seed;
  EXPECT_LE(machine.needless * 20, machine.waits) << machine.needless << " of " << machine.waits;
}

TEST_P(Plan, KeepsWhatEachThreadAskedFor) {
  Recording recording(GetParam(), 1 + GetParam() % 9, 20'000);
  Planned planned(recording);
  // A track holds whole threads, one after the other.
  std::vector<std::vector<std::pair<CallGroup, uint64_t>>> planned_threads;
  for (const auto& [track, ops] : planned.tracks()) {
    planned_threads.emplace_back();
    for (const Op& op : ops) {
      if (op.kind == OpKind::kNextThread) planned_threads.emplace_back();
      if (!is_call(op.kind)) continue;
      bool sized = makes_block(op.kind) || op.kind == OpKind::kRealloc;
      planned_threads.back().emplace_back(group_of(op.kind), sized ? op.size : 0);
    }
  }
  std::vector<std::vector<std::pair<CallGroup, uint64_t>>> asked;
  for (const auto& [thread, calls] : recording.asked) asked.push_back(calls);
  std::ranges::sort(planned_threads);
  std::ranges::sort(asked);
  EXPECT_EQ(planned_threads, asked);
  EXPECT_EQ(planned.tail.max_ideal_bytes, recording.peak);
  EXPECT_EQ(planned.tail.threads, recording.asked.size());
}

TEST_P(Plan, WindowsBeginWithTheHeapOfThen) {
  Recording recording(GetParam(), 1 + GetParam() % 5, 20'000);
  uint64_t middle = recording.events[recording.events.size() / 2].tick;
  PlanOptions first, second;
  first.to_tick = middle - 1;
  second.from_tick = middle;
  Planned before(recording, first);
  uint64_t left = before.tail.end_ideal_bytes;
  uint64_t calls[3] = {};
  for (uint64_t n : before.tail.calls) calls[0] += n;
  Planned after(recording, second);
  for (uint64_t n : after.tail.calls) calls[1] += n;
  EXPECT_GE(after.tail.max_ideal_bytes, left);
  Machine machine{after.tracks(), std::vector<Machine::Slot>(after.tail.slots), {}, {}, {}};
  EXPECT_TRUE(machine.run(1));
  uint64_t end = after.tail.end_ideal_bytes;
  Planned whole(recording);
  for (uint64_t n : whole.tail.calls) calls[2] += n;
  EXPECT_EQ(calls[0] + calls[1], calls[2]);
  EXPECT_EQ(end, whole.tail.end_ideal_bytes);
}

TEST_P(Plan, OneThreadNeedsNoWaits) {
  Recording recording(GetParam(), 6, 5'000);
  PlanOptions options;
  options.one_thread = true;
  Planned planned(recording, options);
  EXPECT_EQ(planned.tail.waits, 0u);
  EXPECT_EQ(planned.tail.tracks, 1u);
  EXPECT_EQ(planned.tail.max_ideal_bytes, recording.peak);
}

INSTANTIATE_TEST_SUITE_P(Seeds, Plan, testing::Range(1u, 25u));

TEST(PlanSlots, AreUsedAgain) {
  // One thread makes what another frees: a million blocks, never more than ten at once.
  Recording recording(1, 1, 0);
  uint64_t tick = 0;
  std::vector<uint64_t> live;
  for (uint64_t i = 0; i < 400'000; ++i) {
    Event event;
    event.image = ImageId{1};
    event.tick = ++tick;
    bool makes = live.size() < 10;
    event.kind = makes ? Kind::kAlloc : Kind::kFree;
    event.op = makes ? wire::Op::kMalloc : wire::Op::kFree;
    event.thread = ThreadId{makes ? 1u : 2u};
    event.size = makes ? 10 : 0;
    event.address = makes ? 0x1000 + i % 64 * 16 : live.front();
    if (makes)
      live.push_back(event.address);
    else
      live.erase(live.begin());
    recording.events.push_back(event);
  }
  Planned planned(recording);
  EXPECT_LT(planned.tail.slots, 5000u);
  Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
  EXPECT_TRUE(machine.run(1));
}

TEST(PlanOrder, AnOvertakenFreeBelongsToTheOlderBlock) {
  Recording recording(1, 1, 0);
  auto add = [&](Kind kind, uint32_t thread, uint64_t size) {
    Event event;
    event.image = ImageId{1};
    event.kind = kind;
    event.op = kind == Kind::kFree ? wire::Op::kFree : wire::Op::kMalloc;
    event.thread = ThreadId{thread};
    event.address = 0x100;
    event.size = size;
    event.tick = 10 + recording.events.size();
    recording.events.push_back(event);
  };
  add(Kind::kAlloc, 1, 100);
  add(Kind::kAlloc, 2, 7);  // Given out before its free was recorded.
  add(Kind::kFree, 1, 0);
  add(Kind::kFree, 2, 0);
  Planned planned(recording);
  EXPECT_EQ(planned.tail.inversions, 1u);
  EXPECT_EQ(planned.tail.unknown_frees, 0u);
  EXPECT_EQ(planned.tail.end_ideal_bytes, 0u);
  auto tracks = planned.tracks();
  // Each frees its own, so nobody waits but for the start of the second thread.
  EXPECT_EQ(planned.tail.waits, 1u);
  Machine machine{tracks, std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
  EXPECT_TRUE(machine.run(1));
}

// Freed by something that is not recorded, so that its address is given out again.
TEST(PlanOrder, AMissingFreeIsReplayed) {
  for (uint32_t threads : {1u, 2u}) {
    Recording recording(1, 1, 0);
    auto add = [&](Kind kind, uint32_t thread, uint64_t address, uint64_t size) {
      Event event;
      event.image = ImageId{1};
      event.kind = kind;
      event.op = kind == Kind::kFree ? wire::Op::kFree : wire::Op::kMalloc;
      event.thread = ThreadId{thread};
      event.address = address;
      event.size = size;
      // Right after each other, which several threads' clocks could not tell apart.
      event.tick = 1000 + recording.events.size() * (threads == 1 ? 1 : 2 * Untangler::kWindow);
      recording.events.push_back(event);
    };
    for (int i = 0; i < 10; ++i) add(Kind::kAlloc, 1, 0x100, 100);
    add(Kind::kFree, 1, 0x100, 0);
    add(Kind::kAlloc, threads, 0x200, 7);
    Planned planned(recording);
    EXPECT_EQ(planned.tail.missing_frees, 9u);
    EXPECT_EQ(planned.tail.inversions, 0u);
    EXPECT_EQ(planned.tail.end_ideal_bytes, 7u);
    // Where nothing else is possible, it was freed before its address was given out again.
    EXPECT_EQ(planned.tail.max_ideal_bytes, threads == 1 ? 100u : 200u);
    Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
    EXPECT_TRUE(machine.run(1));
    // The heap that is built up holds none of those.
    Planned late(recording, {.from_tick = recording.events[9].tick + 1});
    EXPECT_EQ(late.tail.setup_calls, 1u);
  }
}

// By realloc as by malloc.
TEST(PlanOrder, OfOneThreadTheIdealIsExactWhereFreesAreMissing) {
  Recording recording(1, 1, 0);
  auto add = [&](Kind kind, uint64_t address, uint64_t size) {
    Event event;
    event.image = ImageId{1};
    event.kind = kind;
    event.op = kind == Kind::kAlloc ? wire::Op::kMalloc : wire::Op::kRealloc;
    event.thread = ThreadId{1};
    event.address = address;
    event.size = size;
    event.tick = 1000 + recording.events.size();
    recording.events.push_back(event);
  };
  add(Kind::kAlloc, 0x100, 1000);  // Its free is missing.
  add(Kind::kAlloc, 0x200, 10);
  add(Kind::kReallocBegin, 0x200, 0);
  add(Kind::kReallocEnd, 0x100, 900);
  add(Kind::kReallocBegin, 0x100, 0);  // In place: nothing is missing.
  add(Kind::kReallocEnd, 0x100, 950);
  add(Kind::kAlloc, 0x200, 20);
  Planned planned(recording);
  EXPECT_EQ(planned.tail.missing_frees, 1u);
  EXPECT_EQ(planned.tail.inversions, 0u);
  EXPECT_EQ(planned.tail.max_ideal_bytes, 1010u);
  EXPECT_EQ(planned.tail.end_ideal_bytes, 970u);
  Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
  EXPECT_TRUE(machine.run(1));
}

TEST(PlanKinds, ReallocOfNothingStaysOne) {
  Recording recording(1, 1, 0);
  Event event;
  event.image = ImageId{1};
  event.thread = ThreadId{1};
  event.kind = Kind::kAlloc;
  event.op = wire::Op::kRealloc;
  event.address = 0x100;
  event.size = 10;
  event.tick = 1000;
  recording.events.push_back(event);
  event.op = wire::Op::kReallocarray;
  event.address = 0x200;
  event.tick = 2000;
  recording.events.push_back(event);
  for (uint64_t from : {uint64_t{0}, uint64_t{1500}}) {  // The second time, one is built up.
    Planned planned(recording, {.from_tick = from});
    EXPECT_EQ(planned.tail.calls[static_cast<int>(OpKind::kRealloc)], from == 0 ? 2u : 1u);
    EXPECT_EQ(planned.tail.calls[static_cast<int>(OpKind::kMalloc)], 0u);
    Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
    EXPECT_TRUE(machine.run(1));
  }
}

// Each recorded before the block that it is of was born, by another thread.
TEST(PlanOrder, WhatComesTooEarlyWaitsForItsBlock) {
  Recording recording(1, 1, 0);
  auto add = [&](uint32_t thread, Kind kind, uint64_t address, uint64_t size = 0) {
    Event event;
    event.image = ImageId{1};
    event.kind = kind;
    event.op = kind == Kind::kFree    ? wire::Op::kFree
               : kind == Kind::kAlloc ? wire::Op::kMalloc
                                      : wire::Op::kRealloc;
    event.thread = ThreadId{thread};
    event.address = address;
    event.size = size;
    event.tick = 1000 + recording.events.size();
    recording.events.push_back(event);
  };
  add(2, Kind::kFree, 0x100);
  add(1, Kind::kAlloc, 0x100, 10);
  add(3, Kind::kReallocBegin, 0x200);
  add(3, Kind::kReallocEnd, 0x300, 30);
  add(1, Kind::kAlloc, 0x200, 20);
  add(2, Kind::kFree, 0x400);
  add(2, Kind::kAlloc, 0x500, 50);
  add(3, Kind::kReallocBegin, 0x300);
  add(3, Kind::kReallocEnd, 0x400, 40);
  add(1, Kind::kFree, 0x500);
  for (uint64_t from : {uint64_t{0}, uint64_t{1005}}) {
    PlanOptions options;
    options.from_tick = from;
    Planned planned(recording, options);
    EXPECT_EQ(planned.tail.inversions, 3u);
    EXPECT_EQ(planned.tail.unknown_frees, 0u);
    EXPECT_EQ(planned.tail.end_ideal_bytes, 0u);
    Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
    EXPECT_TRUE(machine.run(1));
  }
  // Too late: the block is another one, which happens to be there.
  recording.events.clear();
  add(2, Kind::kFree, 0x100);
  add(1, Kind::kAlloc, 0x100, 10);
  recording.events.back().tick += 10 * Untangler::kWindow;
  Planned planned(recording);
  EXPECT_EQ(planned.tail.inversions, 0u);
  EXPECT_EQ(planned.tail.unknown_frees, 1u);
  EXPECT_EQ(planned.tail.end_ideal_bytes, 10u);
}

// All of it in one epoch, so that the images are announced before the first event.
TEST(PlanFork, ChildrenBeginWithTheHeapAtTheFork) {
  Recording recording(1, 1, 0);
  auto add = [&](uint32_t image, uint64_t tick, Kind kind, uint64_t address, uint64_t size = 0) {
    Event event;
    event.image = ImageId{image};
    event.thread = ThreadId{1};
    event.kind = kind;
    event.op = kind == Kind::kFree ? wire::Op::kFree : wire::Op::kMalloc;
    event.address = address;
    event.size = size;
    event.tick = tick;
    recording.events.push_back(event);
  };
  for (uint32_t id : {2u, 3u}) {
    trace::Image child;
    child.id = ImageId{id};
    child.parent = ImageId{id - 1};
    child.origin = trace::Origin::kForked;
    child.forked_tick = child.start_tick = id * 1000;
    recording.children.push_back(child);
  }
  add(1, 1000, Kind::kAlloc, 0x100, 1);
  add(1, 2000, Kind::kAlloc, 0x200, 2);  // In the tick of the fork: before it.
  add(1, 2500, Kind::kFree, 0x100);
  add(1, 2600, Kind::kAlloc, 0x300, 4);
  add(2, 2700, Kind::kAlloc, 0x300, 8);
  add(2, 3001, Kind::kFree, 0x300);
  add(3, 3500, Kind::kFree, 0x100);
  add(3, 3501, Kind::kFree, 0x200);
  add(3, 3502, Kind::kFree, 0x300);
  add(2, 3600, Kind::kFree, 0x100);
  add(2, 3601, Kind::kFree, 0x200);
  Planned child(recording, {.image = ImageId{2}});
  EXPECT_EQ(child.tail.setup_calls, 2u);
  EXPECT_EQ(child.tail.unknown_frees, 0u);
  EXPECT_EQ(child.tail.calls[static_cast<int>(OpKind::kFree)], 3u);
  Planned grandchild(recording, {.image = ImageId{3}});
  EXPECT_EQ(grandchild.tail.setup_calls, 3u);
  EXPECT_EQ(grandchild.tail.max_ideal_bytes, 11u);
  EXPECT_EQ(grandchild.tail.unknown_frees, 0u);
}

TEST(PlanSampled, IsRefused) {
  Recording recording(1, 1, 100);
  Survey survey = recording.survey();
  survey.tables.header.settings = {"sample=524288"};
  Result<FileTail> planned = plan("x.mscope", survey, {.image = ImageId{1}}, -1, "nowhere");
  ASSERT_FALSE(planned);
  EXPECT_NE(planned.error().sentence.find("sample"), std::string::npos);
}

TEST(CoarseSize, IsNeverSmallerAndNotMuchLarger) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 100'000; ++i) {
    uint64_t size = random() >> (random() % 63);
    uint64_t coarse = coarse_size(size);
    ASSERT_GE(coarse, size);
    if (size < uint64_t{1} << 60) {
      ASSERT_LE(coarse, std::max(size + size / 8 + 1, size + 15));
    }
    ASSERT_EQ(coarse_size(coarse), coarse);
  }
  EXPECT_EQ(coarse_size(0), 0u);
}

TEST(Workload, KnowsBlocksThatItsTracksHaveForgotten) {
  Recording recording(1, 1, 0);
  auto add = [&](Kind kind, uint64_t address) {
    Event event;
    event.image = ImageId{1};
    event.thread = ThreadId{1};
    event.kind = kind;
    event.op = kind == Kind::kFree ? wire::Op::kFree : wire::Op::kMalloc;
    event.address = address;
    event.tick = 10 + recording.events.size();
    recording.events.push_back(event);
  };
  // Two that stay, with as many births in between as are remembered; then they are freed.
  add(Kind::kAlloc, 0x100);
  add(Kind::kAlloc, 0x200);
  for (uint64_t i = 2; i < kMostBirths + 1; ++i) {
    add(Kind::kAlloc, 0x300);
    add(Kind::kFree, 0x300);
  }
  add(Kind::kFree, 0x200);
  add(Kind::kFree, 0x100);
  Planned planned(recording);
  std::vector<Op> ops = planned.tracks()[0];
  Machine machine{planned.tracks(), std::vector<Machine::Slot>(planned.tail.slots), {}, {}, {}};
  ASSERT_TRUE(machine.run(1));
  ASSERT_EQ(ops[0].kind, OpKind::kNewSlots);
  EXPECT_EQ(ops[ops.size() - 2].slot, ops[2].slot);
  EXPECT_EQ(ops[ops.size() - 1].slot, ops[1].slot);
}

// A workload may come from anybody.
TEST(Workload, DamageIsFound) {
  Recording recording(3, 4, 3'000);
  Planned planned(recording);
  std::string bytes;
  {
    int fd = open(planned.path.c_str(), O_RDONLY);
    char buffer[4096];
    for (ssize_t n; (n = read(fd, buffer, sizeof buffer)) > 0;)
      bytes.append(buffer, static_cast<size_t>(n));
    close(fd);
  }
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    std::string damaged = bytes;
    if (i % 3 == 0)
      damaged.resize(random() % damaged.size());
    else
      damaged[random() % damaged.size()] ^= static_cast<char>(1 + random() % 255);
    int fd = open(planned.path.c_str(), O_WRONLY | O_TRUNC);
    ASSERT_EQ(write(fd, damaged.data(), damaged.size()), static_cast<ssize_t>(damaged.size()));
    close(fd);
    Result<WorkloadReader> reader = WorkloadReader::open(planned.path);
    bool whole = reader && reader->read([](uint32_t, const Op&) {});
    EXPECT_FALSE(whole) << i;
  }
}

// Whole by its checksums, but its tail asks for more than its operations can need.
TEST(Workload, LiesInTheTailAreFound) {
  Recording recording(3, 4, 3'000);
  Planned planned(recording);
  int fd = open(planned.path.c_str(), O_RDWR);
  FileTail tail = planned.tail;
  std::vector<ChunkPlace> places(tail.chunks);
  std::vector<TrackPlace> tracks(tail.tracks);
  auto at = static_cast<off_t>(tail.places_offset);
  auto tracks_at = at + static_cast<off_t>(places.size() * sizeof(ChunkPlace));
  ASSERT_GT(pread(fd, places.data(), places.size() * sizeof(ChunkPlace), at), 0);
  ASSERT_GT(pread(fd, tracks.data(), tracks.size() * sizeof(TrackPlace), tracks_at), 0);
  auto opens = [&](FileTail lie, std::vector<TrackPlace> lies) {
    lie.checksum = checksum(lie, places, lies);
    auto bytes = static_cast<off_t>(lies.size() * sizeof(TrackPlace));
    EXPECT_EQ(pwrite(fd, lies.data(), static_cast<size_t>(bytes), tracks_at), bytes);
    EXPECT_EQ(pwrite(fd, &lie, sizeof lie, tracks_at + bytes), static_cast<ssize_t>(sizeof lie));
    return WorkloadReader::open(planned.path).has_value();
  };
  EXPECT_TRUE(opens(tail, tracks));
  FileTail lie = tail;
  lie.slots = UINT32_MAX;
  EXPECT_FALSE(opens(lie, tracks));
  lie = tail;
  lie.largest_stored = uint64_t{1} << 40;
  EXPECT_FALSE(opens(lie, tracks));
  lie = tail;
  lie.largest_raw = uint64_t{1} << 40;
  EXPECT_FALSE(opens(lie, tracks));
  lie = tail;
  lie.calls[0] = uint64_t{1} << 63;
  EXPECT_FALSE(opens(lie, tracks));
  std::vector<TrackPlace> lies = tracks;
  lies[0].births = kMostBirths;
  EXPECT_FALSE(opens(tail, lies));
  close(fd);
}

TEST(Statistics, CountWhatWasAskedFor) {
  Recording recording(5, 3, 10'000);
  Planned planned(recording);
  uint64_t requests = 0, bytes = 0;
  for (const auto& [thread, calls] : recording.asked)
    for (auto [group, size] : calls)
      if (group != CallGroup::kFree) ++requests, bytes += size;
  Result<WorkloadReader> reader = WorkloadReader::open(planned.path);
  ASSERT_TRUE(reader);
  Result<Statistics> statistics = replay::statistics(*reader, 7);
  ASSERT_TRUE(statistics);
  EXPECT_EQ(statistics->all.count, requests);
  EXPECT_EQ(statistics->all.bytes, bytes);
  uint64_t in_slices = 0, in_powers = 0, in_sizes = 0, largest = 0;
  for (const Requests& slice : statistics->slices) {
    in_slices += slice.count;
    largest = std::max(largest, slice.largest);
  }
  for (uint64_t count : statistics->powers) in_powers += count;
  for (auto [size, count] : statistics->sizes) in_sizes += count;
  EXPECT_EQ(in_slices, requests);
  EXPECT_EQ(in_powers, requests);
  EXPECT_EQ(in_sizes, requests);
  EXPECT_EQ(largest, statistics->all.largest);
}

}  // namespace
}  // namespace malloscope::replay
