// SPDX-License-Identifier: Apache-2.0
#include "analyze/sites.h"

#include <gtest/gtest.h>

#include <map>

#include "analyze/frames.h"
#include "trace/event_stream.h"

namespace malloscope::analyze {
namespace {

constexpr uint64_t kBias = 0x10000;

class FakeNaming : public Naming {
 public:
  std::map<uint64_t, std::vector<symbols::SymbolFrame>> at;  // By offset.
  std::map<uint64_t, int> asked;

  std::vector<symbols::SymbolFrame> frames(const symbols::ModuleFile&, uint64_t offset) override {
    ++asked[offset];
    auto found = at.find(offset);
    if (found != at.end()) return found->second;
    return {{"f" + std::to_string(offset), "f.cc", static_cast<int>(offset)}};
  }
  bool is_plumbing(const std::string& function, const std::string&) override {
    return function.starts_with("std::");
  }
};

struct Sites : ::testing::Test {
  trace::Tables tables;
  FakeNaming naming;
  Accounts accounts;
  uint64_t tick = 0;
  uint64_t address = 0;

  Sites() {
    for (uint32_t i = 1; i <= 2; ++i) {
      trace::Image image;
      image.id = ImageId{i};
      uint64_t bias = kBias * i;  // Every image loads the module elsewhere.
      image.modules.push_back({bias, bias + 0x1000, bias, 0, "/bin/app", "ab"});
      tables.images.push_back(image);
    }
    for (const trace::Image& image : tables.images) accounts.image_started(image);
  }

  // A stack of return addresses given as offsets, innermost first.
  void stack(uint32_t image, uint32_t id, std::vector<uint64_t> offsets, uint32_t flags = 0) {
    std::vector<uint64_t> frames;
    for (size_t i = offsets.size(); i-- > 0;)
      frames.push_back(offsets[i] & wire::kInterrupted ? offsets[i] + kBias * image
                                                       : offsets[i] + 1 + kBias * image);
    ASSERT_TRUE(tables.images[image - 1].stacks.define(StackId{id}, StackId::kNone, 0, 0, flags,
                                                       frames.data(), frames.size()));
  }
  void alloc(uint32_t image, uint32_t id, uint64_t size) {
    wire::Event event;
    event.tick = ++tick;
    event.address = address += 16;
    event.size = size;
    event.stack = StackId{id};
    event.thread = ThreadId{1};
    event.image = ImageId{image};
    accounts.events({&event, 1});
  }
};

TEST_F(Sites, BlameTheInnermostFrameThatIsNoPlumbing) {
  naming.at[10] = {{"std::allocate", "", 0}, {"grow", "g.cc", 7}};  // grow() inlined plumbing.
  stack(1, 1, {5, 10, 20});
  naming.at[5] = {{"std::new", "", 0}};
  alloc(1, 1, 100);
  FrameTable frames(tables, naming);
  std::vector<Site> found = sites(accounts, &frames);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(frames.frame(found[0].frame).function, "grow");
  EXPECT_EQ(frames.frame(found[0].frame).line, 7);
  EXPECT_EQ(frames.frame(found[0].frame).module, "/bin/app");
  std::vector<FrameId> stack_frames;
  frames.stack(ImageId{1}, StackId{1}, &stack_frames);
  EXPECT_EQ(stack_frames.size(), 4u);
}

TEST_F(Sites, BlameTheInnermostFrameIfAllIsPlumbing) {
  naming.at[5] = {{"std::a", "", 0}, {"std::b", "", 0}};
  stack(1, 1, {5});
  alloc(1, 1, 100);
  FrameTable frames(tables, naming);
  EXPECT_EQ(frames.frame(sites(accounts, &frames)[0].frame).function, "std::a");
}

TEST_F(Sites, MergeStacksOfAllImagesAndShowTheHeaviest) {
  stack(1, 1, {5, 10});
  stack(1, 2, {5, 20});
  stack(2, 1, {5, 30});
  stack(2, 2, {6, 30});
  alloc(1, 1, 100);
  alloc(1, 2, 300);
  alloc(2, 1, 200);
  alloc(2, 2, 50);
  FrameTable frames(tables, naming);
  std::vector<Site> found = sites(accounts, &frames);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(frames.frame(found[0].frame).function, "f5");
  EXPECT_EQ(found[0].amounts.peak_bytes, 600u);
  EXPECT_EQ(found[0].amounts.allocations, 3u);
  EXPECT_EQ(found[0].stacks, 3u);
  EXPECT_EQ(found[0].image, ImageId{1});
  EXPECT_EQ(found[0].stack, StackId{2});
  EXPECT_EQ(found[1].amounts.peak_bytes, 50u);
}

TEST_F(Sites, AreRankedByAnyMetricAndThoseWithNoneAreLeftOut) {
  stack(1, 1, {5});
  stack(1, 2, {6});
  alloc(1, 1, 100);
  alloc(1, 2, 10);
  alloc(1, 2, 10);
  FrameTable frames(tables, naming);
  std::vector<Site> found = sites(accounts, &frames);
  std::vector<const Site*> by_calls = heaviest(found, frames, Metric::kCalls, 5);
  ASSERT_EQ(by_calls.size(), 2u);
  EXPECT_EQ(frames.frame(by_calls[0]->frame).function, "f6");
  EXPECT_EQ(heaviest(found, frames, Metric::kPeak, 1).size(), 1u);
  EXPECT_TRUE(heaviest(found, frames, Metric::kTemporary, 5).empty());
}

TEST_F(Sites, NameEveryPlaceOnce) {
  stack(1, 1, {5, 10});
  stack(1, 2, {6, 10});
  stack(2, 1, {5, 10});
  for (uint32_t i = 1; i <= 2; ++i) alloc(i, 1, 1);
  FrameTable frames(tables, naming);
  std::vector<FrameId> out;
  frames.stack(ImageId{1}, StackId{1}, &out);
  frames.stack(ImageId{1}, StackId{2}, &out);
  frames.stack(ImageId{2}, StackId{1}, &out);
  for (auto [offset, times] : naming.asked) EXPECT_EQ(times, 1) << offset;
}

TEST_F(Sites, LookUpAnInterruptedInstructionItself) {
  stack(1, 1, {5, 8 | wire::kInterrupted});
  FrameTable frames(tables, naming);
  std::vector<FrameId> out;
  frames.stack(ImageId{1}, StackId{1}, &out);
  EXPECT_EQ(frames.frame(out[0]).function, "f5");
  EXPECT_EQ(frames.frame(out[1]).function, "f8");
}

TEST_F(Sites, ShowTheAddressOfCodeOutsideAllModules) {
  stack(1, 1, {0x7f1200});
  stack(1, 2, {0x7f1200}, wire::kStackCut);
  alloc(1, 1, 1);
  FrameTable frames(tables, naming);
  const Frame& frame = frames.frame(sites(accounts, &frames)[0].frame);
  EXPECT_EQ(frame.function, "0x801200");
  EXPECT_TRUE(frame.module.empty());
  EXPECT_EQ(frames.root(ImageId{1}, StackId{1}), FrameTable::Root::kReached);
  EXPECT_EQ(frames.root(ImageId{1}, StackId{2}), FrameTable::Root::kCut);
}

TEST_F(Sites, LeaveOutTheRecordersOwnFrames) {
  constexpr uint64_t kOurs = 0x2000;
  for (trace::Image& image : tables.images)
    image.modules.push_back({kBias * raw(image.id) + kOurs, kBias * raw(image.id) + 0x3000, 0, 0,
                             "/tmp/malloscope-1/libmalloscope.so", ""});
  naming.at[5] = {{"std::a", "", 0}};
  stack(1, 1, {5, kOurs + 8, kOurs + 16, 10});
  stack(1, 2, {kOurs + 8, 5});
  stack(1, 3, {kOurs + 8, kOurs + 16});
  FrameTable frames(tables, naming);
  auto names = [&](uint32_t id) {
    std::vector<FrameId> out;
    frames.stack(ImageId{1}, StackId{id}, &out);
    std::vector<FrameTable::Call> calls;
    frames.calls(ImageId{1}, StackId{id}, &calls);
    size_t in_calls = 0;
    for (const FrameTable::Call& call : calls) in_calls += call.frames;
    EXPECT_EQ(in_calls, out.size());
    std::string text;
    for (FrameId frame : out) text += frames.frame(frame).function + " ";
    return text;
  };
  EXPECT_EQ(names(1), "std::a f10 ");
  EXPECT_EQ(names(2), "std::a ");
  EXPECT_EQ(names(3), "[unknown] ");  // A stack has at least one frame.
  auto site = [&](uint32_t id) {
    return frames.frame(frames.site(ImageId{1}, StackId{id})).function;
  };
  EXPECT_EQ(site(1), "f10");
  EXPECT_EQ(site(2), "std::a");
  EXPECT_EQ(site(3), "[unknown]");
}

TEST_F(Sites, HaveANameEvenWithoutAStack) {
  alloc(1, 0, 7);
  FrameTable frames(tables, naming);
  std::vector<Site> found = sites(accounts, &frames);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(frames.frame(found[0].frame).function, "[unknown]");
  EXPECT_EQ(frames.root(ImageId{1}, StackId::kNone), FrameTable::Root::kStopped);
}

}  // namespace
}  // namespace malloscope::analyze
