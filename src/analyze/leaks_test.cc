// SPDX-License-Identifier: Apache-2.0
#include "analyze/leaks.h"

#include <gtest/gtest.h>

#include <map>

#include "trace/event_stream.h"

namespace malloscope::analyze {
namespace {

// The return address 0x1000 + n belongs to the n-th function.
class ListNaming : public Naming {
 public:
  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile&, uint64_t offset) override {
    static const std::map<uint64_t, std::string> kNames = {
        {1, "main"},          {2, "Algorithm::sysExecute()"},
        {3, "make_hit()"},    {4, "std::vector<int>::reserve(unsigned long)"},
        {5, "load_tables()"}, {6, "driver(Job*)"}};
    return {{kNames.at(offset), "a.cc", static_cast<int>(offset)}};
  }
  bool is_plumbing(const std::string& function, const std::string&) override {
    return function.starts_with("std::");
  }
};

class LeaksTest : public ::testing::Test {
 protected:
  // Images 1 and 2; every stack is known to both.
  void start(Window window = {}) {
    Query query;
    ask_for_leaks(&query);
    accounts_ = std::make_unique<Accounts>(Selection{}, window, query.tally);
    tables_.header.ns_per_tick = 1;
    for (uint32_t i = 1; i <= 2; ++i) {
      trace::Image image;
      image.id = ImageId{i};
      image.pid = static_cast<int>(i);
      image.modules = {{0x1000, 0x2000, 0x1000, 0, "/opt/app", "ab"}};
      define(&image, 1, {4, 3, 2, 1}, 0);
      define(&image, 2, {5, 1}, 0);
      define(&image, 3, {3, 6}, wire::kStackCut);
      define(&image, 4, {3, 2, 1}, 0);
      tables_.images.push_back(std::move(image));
    }
    for (const trace::Image& image : tables_.images) accounts_->image_started(image);
  }
  static void define(trace::Image* image, uint32_t id, std::vector<uint64_t> inner_first,
                     uint32_t flags) {
    std::vector<uint64_t> frames;
    for (size_t i = inner_first.size(); i-- > 0;) frames.push_back(0x1001 + inner_first[i]);
    image->stacks.define(StackId{id}, StackId::kNone, 0, 0, flags, frames.data(), frames.size());
  }
  void alloc(uint64_t tick, uint32_t stack, uint64_t size, uint32_t image = 1) {
    show(wire::Kind::kAlloc, tick, address_ += 16, stack, size, image);
  }
  void free_at(uint64_t tick, uint64_t address) { show(wire::Kind::kFree, tick, address, 0, 0, 1); }
  void show(wire::Kind kind, uint64_t tick, uint64_t address, uint32_t stack, uint64_t size,
            uint32_t image) {
    wire::Event event;
    event.kind = kind;
    event.op = kind == wire::Kind::kFree ? wire::Op::kFree : wire::Op::kMalloc;
    event.tick = tick;
    event.address = address;
    event.stack = StackId{stack};
    event.size = size;
    event.thread = ThreadId{1};
    event.image = ImageId{image};
    accounts_->events({&event, 1});
  }
  Leaks look(std::vector<std::string> within = {}, const char* suppressions = "") {
    if (!reading_) {
      accounts_->finish();
      reading_ = std::make_unique<Reading>("t.mscope", std::move(tables_), std::move(accounts_),
                                           std::make_unique<ListNaming>());
    }
    EXPECT_TRUE(suppressions_.add(suppressions, "t.supp"));
    within_.clear();
    for (const std::string& text : within) within_.push_back(*Pattern::make(text, "--within"));
    return find_leaks(reading_.get(), {}, within_, suppressions_);
  }
  std::string name(const Leak& leak) { return reading_->frames().frame(leak.stack[0]).function; }
  Answer answer(const Leaks& leaks, LeakView view = {}) {
    view.within = within_;
    return leaks_answer(reading_.get(), {}, leaks, suppressions_, view);
  }

  trace::Tables tables_;
  std::unique_ptr<Accounts> accounts_;
  std::unique_ptr<Reading> reading_;
  Suppressions suppressions_;
  std::vector<Pattern> within_;
  uint64_t address_ = 0;
};

TEST_F(LeaksTest, AreUniqueByWhatTheirStacksLookLike) {
  start();
  alloc(10, 1, 100);
  alloc(20, 4, 50);  // The same but for the frame of std::, and the line is the same.
  alloc(30, 2, 7);
  alloc(40, 1, 1, 2);  // In another process.
  free_at(50, 48);
  Leaks leaks = look();
  ASSERT_EQ(leaks.found.size(), 1u);
  EXPECT_EQ(name(leaks.found[0]), "make_hit()");
  EXPECT_EQ(leaks.found[0].blocks, 3u);
  EXPECT_EQ(leaks.found[0].bytes, 151u);
  EXPECT_EQ(leaks.found[0].first_tick, 10u);
  EXPECT_EQ(leaks.found[0].last_tick, 40u);
  EXPECT_EQ(leaks.total.blocks, 3u);
  EXPECT_EQ(leaks.total.bytes, 151u);
}

TEST_F(LeaksTest, GrowingOnesComeBeforeALargerOneMadeOnce) {
  start();
  alloc(1, 2, 1'000'000);
  for (uint64_t tick = 0; tick < 1000; tick += 50) alloc(tick + 2, 1, 8);
  alloc(1000, 4, 1);
  Leaks leaks = look();
  ASSERT_EQ(leaks.found.size(), 2u);
  EXPECT_EQ(name(leaks.found[0]), "make_hit()");
  EXPECT_EQ(recurrence(leaks.found[0].periods), Recurrence::kGrowing);
  EXPECT_EQ(leaks.found[0].periods, (1u << kPeriods) - 1);
  EXPECT_EQ(recurrence(leaks.found[1].periods), Recurrence::kOnce);
  EXPECT_EQ(leaks.growing.unique, 1u);
}

TEST_F(LeaksTest, OnceInEachOfManyProcessesIsNotGrowing) {
  start();
  alloc(100, 1, 8, 1);
  alloc(900, 1, 8, 2);
  alloc(1000, 2, 8, 1);
  Leaks leaks = look();
  for (const Leak& leak : leaks.found)
    EXPECT_EQ(recurrence(leak.periods), Recurrence::kOnce) << name(leak);
}

TEST(Recurrence, IsGrowingOnlyIfItDidNotStop) {
  EXPECT_EQ(recurrence(0), Recurrence::kOnce);
  EXPECT_EQ(recurrence(0b1000000000), Recurrence::kOnce);
  EXPECT_EQ(recurrence(0b0000011111), Recurrence::kRepeated);  // A cache that was filled.
  EXPECT_EQ(recurrence(0b1111100000), Recurrence::kGrowing);
  EXPECT_EQ(recurrence(0b1000000001), Recurrence::kRepeated);
}

TEST_F(LeaksTest, OfAWindowAreThoseMadeInIt) {
  start({100, 200});
  alloc(50, 1, 8);
  alloc(150, 1, 16);
  alloc(160, 2, 1);
  free_at(250, 48);  // Still live at the end of the window.
  Leaks leaks = look();
  EXPECT_EQ(leaks.total.bytes, 17u);
}

TEST_F(LeaksTest, WithinIsJudgedOnlyWhereTheStackIsWhole) {
  start();
  alloc(10, 1, 100);
  alloc(20, 2, 7);
  alloc(30, 3, 5);
  Leaks leaks = look({"Algorithm::sysExecute"});
  EXPECT_EQ(leaks.total.bytes, 100u);
  EXPECT_EQ(leaks.undecided.unique, 1u);
  EXPECT_EQ(leaks.undecided.bytes, 5u);
  Answer said = answer(leaks);
  EXPECT_TRUE(said.headline.starts_with(
      "1 leak, 1 unique, in `Algorithm::sysExecute`; ignored 0 unique by 0 filters."))
      << said.headline;
  ASSERT_FALSE(said.notes.empty());
  EXPECT_TRUE(said.notes[0].starts_with("1 more stack (1 block, 5 B) could not be judged"))
      << said.notes[0];

  Leaks both = look({"Algorithm::sysExecute", "driver"});
  EXPECT_EQ(both.total.bytes, 105u);
  EXPECT_EQ(both.undecided.unique, 0u);
}

TEST_F(LeaksTest, SuppressedOnesAreCountedApart) {
  start();
  alloc(10, 1, 100);
  alloc(20, 2, 7);
  alloc(30, 2, 8);
  Leaks leaks = look({}, "# known\nleak:load_tab*\nany:never\n");
  EXPECT_EQ(leaks.total.bytes, 100u);
  EXPECT_EQ(leaks.ignored.unique, 1u);
  EXPECT_EQ(leaks.ignored.blocks, 2u);
  EXPECT_EQ(leaks.ignored.bytes, 15u);
  EXPECT_EQ(leaks.filters, 1u);
  LeakView view;
  view.show_suppressed = true;
  Answer said = answer(leaks, view);
  EXPECT_TRUE(said.headline.starts_with("1 leak, 1 unique; ignored 1 unique by 1 filter."))
      << said.headline;
  ASSERT_EQ(said.tables.size(), 3u);
  EXPECT_EQ(std::get<std::string>(said.tables[1].rows.at(0).cells[3]), "t.supp:2");
}

TEST_F(LeaksTest, NewOnesAreThoseWhoseFunctionsWereNotThere) {
  start();
  alloc(10, 1, 100);
  alloc(20, 2, 7);
  Leaks leaks = look();
  std::set<FunctionsHash> known;
  for (const Leak& leak : leaks.found)
    if (name(leak) == "make_hit()") known.insert(functions_of(leak, reading_->frames()));
  LeakSums fresh = new_leaks(leaks, reading_->frames(), known);
  EXPECT_EQ(fresh.unique, 1u);
  EXPECT_EQ(fresh.bytes, 7u);
}

}  // namespace
}  // namespace malloscope::analyze
