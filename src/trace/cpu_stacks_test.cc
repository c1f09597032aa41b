// SPDX-License-Identifier: Apache-2.0
#include "trace/cpu_stacks.h"

#include <gtest/gtest.h>

namespace malloscope::trace {
namespace {

// Addresses: the program at 0x1000, the recorder at 0x2000; the trampoline is libc's, at 0x3000.
constexpr uint64_t kA = 0x1010, kB = 0x1020, kHandler = 0x1030;
constexpr uint64_t kOurs = 0x2010, kOurs2 = 0x2020, kTrampoline = 0x3000;

using Frames = std::vector<uint64_t>;

uint64_t interrupted(uint64_t address) { return address | wire::kInterrupted; }

class CpuStacks : public testing::Test {
 protected:
  CpuStacks() {
    image_.modules = {{0x1000, 0x2000, 0, 0, "/bin/app", ""},
                      {0x2000, 0x3000, 0, 0, "/lib/libmalloscope-detailed.so", ""},
                      {0x2f00, 0x4000, 0, 0, "/lib/libc.so.6", ""}};
  }

  StackId define(Frames innermost_first, uint32_t flags = 0) {
    Frames frames(innermost_first.rbegin(), innermost_first.rend());
    StackId id{next_++};
    EXPECT_TRUE(
        image_.stacks.define(id, StackId::kNone, 0, 0, flags, frames.data(), frames.size()));
    return id;
  }
  void sample(StackId stack) { image_.cpu.push_back({image_.cpu.size(), 1, ThreadId{1}, stack}); }
  Frames frames(StackId stack) const {
    Frames found;
    image_.stacks.frames(stack, &found);
    return found;
  }

  Image image_;
  uint32_t next_ = 1;
};

TEST_F(CpuStacks, BeginWhereTheThreadWasInterrupted) {
  const std::pair<Frames, Frames> cases[] = {
      {{kTrampoline, interrupted(kA), kB}, {interrupted(kA), kB}},
      {{kOurs, kOurs2, kTrampoline, interrupted(kA), kB}, {interrupted(kA), kB}},
      {{kOurs, interrupted(kA), kB}, {interrupted(kA), kB}},
      {{interrupted(kA), kB}, {interrupted(kA), kB}},
      {{kTrampoline, interrupted(kA)}, {interrupted(kA)}},
      // A handler of the program's was computing.
      {{kTrampoline, interrupted(kHandler), kTrampoline, interrupted(kA), kB},
       {interrupted(kHandler), kTrampoline, interrupted(kA), kB}},
      // It was calling malloc.
      {{kHandler, kTrampoline, interrupted(kA), kB}, {kHandler, kTrampoline, interrupted(kA), kB}},
      // So was the program, or the recorder in its name.
      {{kA, kB}, {kA, kB}},
      {{kOurs, kA, kB}, {kOurs, kA, kB}},
      {{kOurs}, {kOurs}},
  };
  std::vector<StackId> recorded;
  for (const auto& [given, wanted] : cases) sample(recorded.emplace_back(define(given)));
  uint64_t count = image_.stacks.count();
  name_cpu_stacks(&image_);
  for (size_t i = 0; i < recorded.size(); ++i) {
    EXPECT_EQ(frames(image_.cpu[i].stack), cases[i].second) << i;
    EXPECT_TRUE(image_.stacks.is_of_cpu(image_.cpu[i].stack));
    EXPECT_TRUE(image_.stacks.defined(image_.cpu[i].stack));
    // What allocations have is as it was.
    EXPECT_EQ(frames(recorded[i]), cases[i].first) << i;
    EXPECT_FALSE(image_.stacks.is_of_cpu(recorded[i]));
  }
  EXPECT_EQ(image_.stacks.count(), count);  // Of what was recorded.
}

TEST_F(CpuStacks, AreOneIfTheyLookTheSame) {
  StackId first = define({kTrampoline, interrupted(kA), kB});
  StackId second = define({kOurs, kTrampoline, interrupted(kA), kB});
  StackId cut = define({kTrampoline, interrupted(kA), kB}, wire::kStackCut);
  for (StackId stack : {first, second, first, cut, StackId::kNone}) sample(stack);
  name_cpu_stacks(&image_);
  EXPECT_EQ(image_.cpu[0].stack, image_.cpu[1].stack);
  EXPECT_EQ(image_.cpu[0].stack, image_.cpu[2].stack);
  EXPECT_NE(image_.cpu[0].stack, image_.cpu[3].stack);
  EXPECT_EQ(image_.stacks.flags(image_.cpu[3].stack), wire::kStackCut);
  EXPECT_EQ(image_.stacks.flags(image_.cpu[0].stack), 0u);
  EXPECT_EQ(image_.cpu[4].stack, StackId::kNone);
}

TEST_F(CpuStacks, AreNoneWithoutSamples) {
  define({kA, kB});
  uint32_t bound = image_.stacks.bound();
  name_cpu_stacks(&image_);
  EXPECT_EQ(image_.stacks.bound(), bound);
  EXPECT_FALSE(image_.stacks.is_of_cpu(StackId{1}));
  EXPECT_FALSE(image_.stacks.is_of_cpu(StackId::kNone));
}

TEST(CpuOfExecs, IsToldOnce) {
  auto image = [](uint32_t id, uint32_t parent, int pid, Origin origin,
                  std::vector<CpuSample> samples) {
    Image made;
    made.id = ImageId{id};
    made.parent = ImageId{parent};
    made.pid = pid;
    made.origin = origin;
    made.cpu = std::move(samples);
    return made;
  };
  auto sample = [](uint64_t ns, uint32_t thread) {
    return CpuSample{.tick = 1, .nanoseconds = ns, .thread = ThreadId{thread}};
  };
  // The second thread of the first program execs; its clock goes on, and again in the third.
  std::vector<Image> images;
  images.push_back(image(1, 0, 7, Origin::kLaunched, {sample(50, 1), sample(20, 2), sample(5, 2)}));
  images.push_back(image(2, 1, 7, Origin::kExeced, {sample(26, 1), sample(3, 1)}));
  images.push_back(image(3, 2, 7, Origin::kExeced, {sample(30, 1)}));
  // A child's clock begins anew.
  images.push_back(image(4, 2, 8, Origin::kForked, {sample(9, 1)}));
  images.push_back(image(5, 4, 8, Origin::kExeced, {}));
  images.push_back(image(6, 5, 8, Origin::kExeced, {sample(10, 1)}));
  part_cpu_of_execs(&images);
  std::vector<uint64_t> sums;
  for (const Image& one : images) {
    sums.push_back(0);
    for (const CpuSample& told : one.cpu) sums.back() += told.nanoseconds;
  }
  EXPECT_EQ(sums, (std::vector<uint64_t>{75, 4, 1, 9, 0, 1}));
}

}  // namespace
}  // namespace malloscope::trace
