// SPDX-License-Identifier: Apache-2.0
#include "analyze/phases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include "analyze/accounts.h"
#include "analyze/phase_spans.h"

namespace malloscope::analyze {
namespace {

using wire::Event;
using wire::Kind;
using wire::MarkKind;

Event mark(MarkKind kind, uint32_t name, uint32_t thread = 1, uint32_t image = 1) {
  Event e;
  e.kind = Kind::kMark;
  e.flags = static_cast<uint8_t>(kind);
  e.size = name;
  e.thread = ThreadId{thread};
  e.image = ImageId{image};
  return e;
}

PhasePath path_of(Phases* phases, uint32_t thread = 1, uint32_t image = 1) {
  StrandId strand = phases->strand(ImageId{image}, ThreadId{thread});
  EXPECT_EQ(thread_of(strand), ThreadId{thread});
  return phases->paths().paths[raw(phases_of(strand))];
}

TEST(Phases, AStrandOfNoPhaseIsAThread) {
  Phases phases;
  EXPECT_EQ(raw(phases.strand(ImageId{1}, ThreadId{5})), 5u);
  phases.take(mark(MarkKind::kMark, 0));
  phases.take(mark(MarkKind::kPhaseEnd, 0));
  phases.take(mark(MarkKind::kUnknown, 0));
  EXPECT_EQ(raw(phases.strand(ImageId{1}, ThreadId{5})), 5u);
}

TEST(Phases, OfAProcessAreOfAllItsThreadsAndOfNoOther) {
  Phases phases;
  phases.take(mark(MarkKind::kPhaseBegin, 3, 1));
  EXPECT_EQ(path_of(&phases, 1), PhasePath{3});
  EXPECT_EQ(path_of(&phases, 2), PhasePath{3});
  EXPECT_EQ(path_of(&phases, 1, 2), PhasePath{});
  phases.take(mark(MarkKind::kPhaseEnd, 3, 2));  // Another thread may end it.
  EXPECT_EQ(path_of(&phases, 1), PhasePath{});
}

TEST(Phases, OfAThreadAreOfThatOneAlone) {
  Phases phases;
  phases.take(mark(MarkKind::kThreadPhaseBegin, 3, 1));
  phases.take(mark(MarkKind::kPhaseBegin, 4, 2));
  EXPECT_EQ(path_of(&phases, 1), (PhasePath{4, 3}));
  EXPECT_EQ(path_of(&phases, 2), PhasePath{4});
  phases.take(mark(MarkKind::kThreadPhaseEnd, 3, 2));
  phases.take(mark(MarkKind::kPhaseEnd, 3, 1));
  EXPECT_EQ(path_of(&phases, 1), (PhasePath{4, 3}));
}

TEST(Phases, MatterTogetherNotInWhichOrderTheyBegan) {
  Phases phases;
  for (uint32_t first : {0u, 1u}) {
    phases.take(mark(MarkKind::kPhaseBegin, first));
    phases.take(mark(MarkKind::kPhaseBegin, 1 - first));
    phases.take(mark(MarkKind::kPhaseBegin, 5));
    EXPECT_EQ(path_of(&phases), (PhasePath{0, 1, 5}));
    for (uint32_t name : {0u, 1u, 5u}) phases.take(mark(MarkKind::kPhaseEnd, name));
  }
}

TEST(Phases, OfVeryManyAtOnceTheOutermostAreTold) {
  Phases phases;
  for (uint32_t name = 0; name < 100'000; ++name) {
    phases.take(mark(MarkKind::kPhaseBegin, name));
    EXPECT_EQ(phases.paths().complete, name <= Phases::kMostTogether);
    PhasePath path = path_of(&phases);
    ASSERT_EQ(path.size(), std::min<size_t>(name + 1, Phases::kMostTogether));
    ASSERT_EQ(path.front(), 0u);
  }
}

TEST(Phases, EndAsOftenAsTheyBegan) {
  Phases phases;
  for (int i = 0; i < 2; ++i) phases.take(mark(MarkKind::kPhaseBegin, 0));
  phases.take(mark(MarkKind::kPhaseEnd, 0));
  EXPECT_EQ(path_of(&phases), PhasePath{0});
  phases.take(mark(MarkKind::kPhaseEnd, 0));
  EXPECT_EQ(path_of(&phases), PhasePath{});
}

TEST(Phases, SayWhenThereAreMoreThanHaveNumbers) {
  Phases phases;
  for (uint32_t name = 0; name < kMostPhases; ++name) {
    EXPECT_TRUE(phases.paths().complete);
    phases.take(mark(MarkKind::kPhaseBegin, name));
    StrandId strand = phases.strand(ImageId{1}, ThreadId{7});
    EXPECT_EQ(thread_of(strand), ThreadId{7});
    EXPECT_EQ(phases_of(strand) == PhasesId::kNone, name + 1 == kMostPhases);
    phases.take(mark(MarkKind::kPhaseEnd, name));
  }
  EXPECT_FALSE(phases.paths().complete);
  // What lies around one without a number is still told.
  phases.take(mark(MarkKind::kPhaseBegin, 2));
  phases.take(mark(MarkKind::kPhaseBegin, kMostPhases));
  EXPECT_EQ(path_of(&phases), PhasePath{2});
  phases.take(mark(MarkKind::kPhaseEnd, 2));
  phases.take(mark(MarkKind::kPhaseEnd, kMostPhases));
  // The others are still known, and a thread without a number among phases is still a thread.
  phases.take(mark(MarkKind::kPhaseBegin, 1));
  EXPECT_EQ(path_of(&phases), PhasePath{1});
  EXPECT_EQ(thread_of(phases.strand(ImageId{1}, ThreadId{kMostPhaseThreads})),
            ThreadId{kMostPhaseThreads});
}

// Against a list of all that was begun and not ended.
TEST(Phases, AreThoseThatASlowCountHas) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937 random(seed);
    auto pick = [&](uint32_t below) { return static_cast<uint32_t>(random() % below); };
    constexpr uint32_t kNames = 4, kThreads = 3;
    Accounts accounts({}, {}, {.by_thread = true, .by_phase = true});
    trace::Image image;
    image.id = ImageId{1};
    accounts.image_started(image);
    std::multiset<uint32_t> process;
    std::map<uint32_t, std::multiset<uint32_t>> threads;
    // By thread and the names that were open.
    std::map<std::pair<uint32_t, std::set<uint32_t>>, uint64_t> wanted, given;
    for (uint64_t i = 0; i < 2000; ++i) {
      uint32_t thread = 1 + pick(kThreads), name = pick(kNames);
      Event e;
      if (pick(3) == 0) {
        e = mark(static_cast<MarkKind>(1 + pick(wire::kMarkKinds - 1)), name, thread);
        auto kind = static_cast<MarkKind>(e.flags);
        bool own = kind >= MarkKind::kThreadPhaseBegin;
        std::multiset<uint32_t>& open = own ? threads[thread] : process;
        if (kind == MarkKind::kPhaseBegin || kind == MarkKind::kThreadPhaseBegin) open.insert(name);
        if (kind == MarkKind::kPhaseEnd || kind == MarkKind::kThreadPhaseEnd)
          if (auto found = open.find(name); found != open.end()) open.erase(found);
      } else {
        e.address = 16 * (i + 1);
        e.size = 1;
        e.thread = ThreadId{thread};
        e.image = ImageId{1};
        std::set<uint32_t> names(process.begin(), process.end());
        names.insert(threads[thread].begin(), threads[thread].end());
        ++wanted[{thread, names}];
      }
      e.tick = i;
      accounts.events({&e, 1});
    }
    accounts.tally().for_each_row([&](const Row& row) {
      const PhasePath& path = accounts.phases().paths[raw(phases_of(row.strand))];
      std::set<uint32_t> names(path.begin(), path.end());
      ASSERT_EQ(names.size(), path.size());
      given[{raw(thread_of(row.strand)), names}] += row.amounts.allocations;
    });
    EXPECT_EQ(given, wanted) << seed;
  }
}

TEST(PhaseSpans, GoFromABeginToTheEndOfItsName) {
  trace::Tables tables;
  tables.mark_names = {"a", "b"};
  trace::Image image;
  image.id = ImageId{1};
  image.marks = {{10, ThreadId{1}, MarkKind::kPhaseBegin, 0},
                 {20, ThreadId{1}, MarkKind::kPhaseBegin, 0},
                 {50, ThreadId{1}, MarkKind::kPhaseEnd, 0},
                 {60, ThreadId{1}, MarkKind::kMark, 1},
                 {70, ThreadId{1}, MarkKind::kPhaseEnd, 1},  // Of nothing.
                 // As another thread's lane tells them.
                 {15, ThreadId{2}, MarkKind::kThreadPhaseBegin, 1},
                 {30, ThreadId{2}, MarkKind::kPhaseEnd, 0}};
  tables.images = {image};
  std::vector<PhaseSpan> spans = phase_spans(tables, 100);
  ASSERT_EQ(spans.size(), 3u);
  auto told = [](const PhaseSpan& s) {
    return std::tuple(s.name, raw(s.thread), s.from_tick, s.to_tick, s.ended);
  };
  EXPECT_EQ(told(spans[0]), std::tuple(0u, 0u, 10ul, 50ul, true));
  EXPECT_EQ(told(spans[1]), std::tuple(1u, 2u, 15ul, 100ul, false));
  EXPECT_EQ(told(spans[2]), std::tuple(0u, 0u, 20ul, 30ul, true));
  tables.images[0].end_tick = 80;
  EXPECT_EQ(phase_spans(tables, 100)[1].to_tick, 80u);
}

}  // namespace
}  // namespace malloscope::analyze
