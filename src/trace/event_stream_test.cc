// SPDX-License-Identifier: Apache-2.0
// A trace that was recorded once and is read for ever, whole, cut and damaged.

#include "trace/event_stream.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <random>
#include <tuple>
#include <vector>

#include "trace/file_writer.h"
#include "wire/encode.h"
#include "wire/records.h"
#include "wire/stacks.h"

namespace malloscope::trace {
namespace {

struct Counter : Listener {
  uint64_t allocations = 0, started = 0, ended = 0;
  void image_started(const Image&) override { ++started; }
  void image_ended(const Image&) override { ++ended; }
  void events(std::span<const wire::Event> events) override {
    for (const wire::Event& e : events) allocations += e.kind == wire::Kind::kAlloc;
  }
};

std::string golden() {
  std::ifstream file(MSCOPE_SOURCE "/test/traces/v1-fork.mscope", std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class EventStream : public testing::Test {
 protected:
  Result<Tables> read(const std::string& bytes, Counter* counter) {
    path_ = testing::TempDir() + "malloscope-" + std::to_string(getpid()) + ".mscope";
    std::ofstream(path_, std::ios::binary) << bytes;
    return stream(path_, counter);
  }
  void TearDown() override { unlink(path_.c_str()); }
  std::string path_;
};

TEST_F(EventStream, ReadsVersionOne) {
  Counter counter;
  auto tables = read(golden(), &counter);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_TRUE(tables->complete);
  EXPECT_EQ(counter.allocations, 3600u);
  EXPECT_EQ(counter.started, 2u);
  EXPECT_EQ(counter.ended, 2u);
  EXPECT_EQ(tables->images[1].parent, ImageId{1});
  EXPECT_EQ(tables->images[1].exit->code, 7);
  EXPECT_FALSE(tables->images[0].modules.empty());
}

TEST_F(EventStream, ReadsAMergedTrace) {
  Counter counter;
  auto tables = stream(MSCOPE_SOURCE "/test/traces/v1-merged.mscope", &counter);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_TRUE(tables->complete);
  EXPECT_EQ(counter.ended, 2u);
  ASSERT_EQ(tables->runs.size(), 2u);
  EXPECT_EQ(tables->runs[1].file, "g2.mscope");
  EXPECT_EQ(tables->runs[1].first_image, ImageId{2});
  EXPECT_EQ(tables->runs[1].images, 1u);
  EXPECT_GE(tables->runs[1].start_tick, tables->runs[0].end_tick);
}

// Of test/programs/aligned.cc.
TEST_F(EventStream, ReadsWhichAlignmentsWereAskedFor) {
  using wire::Op;
  struct Aligned : Listener {
    std::vector<std::tuple<Op, uint64_t, uint64_t>> calls;
    void events(std::span<const wire::Event> events) override {
      for (const wire::Event& e : events) {
        if (e.kind != wire::Kind::kAlloc) continue;
        if (wire::is_aligned(e.op) && e.address)
          calls.emplace_back(e.op, uint64_t{1} << e.other, e.size);
        else if (!wire::is_aligned(e.op))
          EXPECT_EQ(e.other, 0u);
        else
          EXPECT_NE(e.other, 0u);
      }
    }
  } aligned;
  auto tables = stream(MSCOPE_SOURCE "/test/traces/v1-aligned.mscope", &aligned);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_TRUE(tables->complete);
  decltype(aligned.calls) wanted = {
      {Op::kMemalign, 64, 1001},         {Op::kMemalign, 64, 1002},
      {Op::kMemalign, 2, 1003},          {Op::kMemalign, 65536, 1004},
      {Op::kMemalign, 1 << 20, 5 << 20}, {Op::kMemalign, 512, 1005},
      {Op::kAlignedAlloc, 256, 1280},    {Op::kAlignedAlloc, 32768, 65536},
      {Op::kPosixMemalign, 4096, 1006},  {Op::kNewAligned, 128, 1152},
      {Op::kNewAligned, 2048, 4096},     {Op::kNewArrayAligned, 8192, 8192},
      {Op::kNewArrayAligned, 32, 1056},  {Op::kMemalign, 4096, 1008},
      {Op::kNewAligned, 64, 64 << 20},
  };
  EXPECT_EQ(aligned.calls, wanted);
}

TEST_F(EventStream, ReadsWhatTheProgramNamed) {
  using wire::MarkKind;
  struct Marks : Listener {
    // Of a mark its kind and name, of an allocation its size.
    std::vector<std::pair<MarkKind, uint64_t>> seen;
    void events(std::span<const wire::Event> events) override {
      for (const wire::Event& e : events)
        if (e.kind == wire::Kind::kMark || e.kind == wire::Kind::kAlloc)
          seen.emplace_back(static_cast<MarkKind>(e.flags), e.size);
    }
  } marks;
  auto tables = stream(MSCOPE_SOURCE "/test/traces/v1-phases.mscope", &marks);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_EQ(tables->mark_names, (std::vector<std::string>{"begin", "load", "parse"}));
  ASSERT_EQ(tables->images[0].marks.size(), 5u);
  EXPECT_EQ(tables->events, 6u);  // Marks are no calls.
  constexpr MarkKind kCall = MarkKind::kUnknown;
  decltype(marks.seen) wanted = {{MarkKind::kMark, 0},
                                 {MarkKind::kPhaseBegin, 1},
                                 {kCall, 1000},
                                 {MarkKind::kThreadPhaseBegin, 2},
                                 {kCall, 100},
                                 {kCall, 100},
                                 {kCall, 100},
                                 {MarkKind::kThreadPhaseEnd, 2},
                                 {MarkKind::kPhaseEnd, 1},
                                 {kCall, 10}};
  EXPECT_EQ(marks.seen, wanted);
}

// A program that computes for 30 ms.
TEST_F(EventStream, ReadsWhereTheProgramComputed) {
  Listener nobody;
  auto tables = stream(MSCOPE_SOURCE "/test/traces/v1-cpu.mscope", &nobody);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_TRUE(tables->header.has_cpu());
  EXPECT_EQ(tables->events, 2u);  // Samples are no calls.
  const Image& image = tables->images[0];
  std::vector<std::tuple<uint64_t, uint32_t, size_t>> seen;  // Time, thread, depth.
  uint64_t last_tick = image.start_tick;
  for (const CpuSample& sample : image.cpu) {
    std::vector<uint64_t> frames;
    image.stacks.frames(sample.stack, &frames);
    seen.emplace_back(sample.nanoseconds, raw(sample.thread), frames.size());
    EXPECT_GE(sample.tick, last_tick);
    last_tick = sample.tick;
    // The kernel's trampoline, which the handler returns to, is no part of it.
    EXPECT_TRUE(frames.empty() || frames[0] & wire::kInterrupted);
  }
  decltype(seen) wanted = {{1353852, 1, 0}, {3558556, 1, 6}, {3977588, 1, 4}, {3984459, 1, 6},
                           {4001033, 1, 4}, {4004928, 1, 4}, {3991359, 1, 4}, {3997408, 1, 4},
                           {1267663, 1, 0}, {2233, 2, 0}};
  EXPECT_EQ(seen, wanted);
}

// A signal handler that interrupts the recorder has a lane of its own, of the same thread.
TEST_F(EventStream, ShowsTwoLanesOfOneThreadInOrder) {
  path_ = testing::TempDir() + "malloscope-" + std::to_string(getpid()) + ".mscope";
  constexpr uint64_t kEvents = 5000;
  uint64_t last_tick = 0;
  {
    FileWriter file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), path_);
    auto put = [&](wire::ChunkType type, const auto& record) {
      wire::Packer payload;
      wire::pack(record, &payload);
      file.append(type, payload.result(), 1, 1);
    };
    wire::HeaderRecord header;
    header.cycles_per_second = 1'000'000'000;
    put(wire::ChunkType::kHeader, header);
    wire::ImageStartRecord image;
    image.image = 1;
    put(wire::ChunkType::kImageStart, image);
    put(wire::ChunkType::kThread, wire::ThreadRecord{1, 1, 7, 1, "t"});
    wire::EventEncoder encoder;
    for (uint64_t lane : {0, 1}) {
      encoder.start_run(ImageId{1}, ThreadId{1}, 10 + lane);
      // The second ends in the middle of the first.
      for (uint64_t i = 0; i < kEvents / (1 + lane); ++i)
        encoder.block(0, 10 + 2 * i + lane, 16 * (2 * i + lane + 1), 8, 0);
    }
    last_tick = encoder.last_tick();
    std::vector<uint8_t> events = encoder.finish();
    file.append(wire::ChunkType::kEvents, events, 10, last_tick);
    file.end_epoch(last_tick + 1);
    wire::Packer end;
    wire::pack(wire::EndRecord{last_tick + 1, 1'000'000'000, 0, ""}, &end);
    file.finish(end.result(), last_tick + 1);
  }
  EXPECT_EQ(last_tick, 10 + 2 * (kEvents - 1));  // Of both together.
  struct Order : Listener {
    uint64_t shown = 0, tick = 0;
    void events(std::span<const wire::Event> events) override {
      for (const wire::Event& e : events) {
        ASSERT_GE(e.tick, tick) << "event " << shown;
        tick = e.tick;
        ++shown;
      }
    }
  } order;
  auto tables = stream(path_, &order);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_EQ(order.shown, kEvents + kEvents / 2);
}

// The lanes are read one after the other, so a definition may be an epoch ahead of what it builds
// on.
TEST_F(EventStream, DefinesAStackThatIsAheadOfItsOwner) {
  path_ = testing::TempDir() + "malloscope-" + std::to_string(getpid()) + ".mscope";
  {
    FileWriter file(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600), path_);
    auto put = [&](wire::ChunkType type, const auto& record) {
      wire::Packer payload;
      wire::pack(record, &payload);
      file.append(type, payload.result(), 1, 1);
    };
    wire::HeaderRecord header;
    header.cycles_per_second = 1'000'000'000;
    put(wire::ChunkType::kHeader, header);
    wire::ImageStartRecord image;
    image.image = 1;
    put(wire::ChunkType::kImageStart, image);
    put(wire::ChunkType::kThread, wire::ThreadRecord{1, 1, 7, 1, "t"});
    wire::StackEncoder stacks;
    auto put_stack = [&](uint32_t id, uint32_t owner, uint32_t kept, uint64_t frame) {
      stacks.add(id, owner, kept, 1, 0, {&frame, 1});
      file.append(wire::ChunkType::kStacks, stacks.finish(ImageId{1}), 1, 1);
    };
    put_stack(2, 1, 1, 0x2000);
    put_stack(4, 3, 1, 0x4000);  // Nobody ever defines 3.
    file.end_epoch(100);
    put_stack(1, 0, 0, 0x1000);
    wire::EventEncoder encoder;
    encoder.start_run(ImageId{1}, ThreadId{1}, 110);
    for (uint32_t stack : {2, 4}) encoder.block(0, 110, 16 * stack, 8, stack);
    file.append(wire::ChunkType::kEvents, encoder.finish(), 110, 110);
    file.end_epoch(200);
    wire::Packer end;
    wire::pack(wire::EndRecord{201, 1'000'000'000, 0, ""}, &end);
    file.finish(end.result(), 201);
  }
  struct Stacks : Listener {
    std::vector<StackId> seen;
    void events(std::span<const wire::Event> events) override {
      for (const wire::Event& e : events) seen.push_back(e.stack);
    }
  } stacks;
  auto tables = stream(path_, &stacks);
  ASSERT_TRUE(tables) << tables.error().sentence;
  EXPECT_EQ(stacks.seen, (std::vector<StackId>{StackId{2}, StackId::kNone}));
  std::vector<uint64_t> frames;
  tables->images[0].stacks.frames(StackId{2}, &frames);
  EXPECT_EQ(frames, (std::vector<uint64_t>{0x2000, 0x1000}));
}

TEST_F(EventStream, ReadsAFileCutAnywhereUpToTheCut) {
  std::string whole = golden();
  uint64_t before = 0;
  for (size_t size = 0; size < whole.size(); ++size) {
    Counter counter;
    auto tables = read(whole.substr(0, size), &counter);
    if (!tables) {
      // Only if not even the header is there.
      ASSERT_LT(size, 300u) << tables.error().sentence;
      continue;
    }
    // The index after the end is not missed.
    if (!tables->end_tick) {
      ASSERT_FALSE(tables->complete) << size;
      ASSERT_FALSE(tables->incomplete_because.empty());
    }
    ASSERT_GE(counter.allocations, before) << "a longer file cannot hold less";
    before = counter.allocations;
  }
  EXPECT_EQ(before, 3600u);
}

TEST_F(EventStream, RefusesEveryFlippedByte) {
  std::string whole = golden();
  std::mt19937 random(1);
  // But for the index behind the end, which is not needed to read the file.
  size_t index = whole.rfind("MSck");
  for (size_t at = 0; at < index; ++at) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 + random() % 255));
    Counter counter;
    auto tables = read(damaged, &counter);
    // A length that became too large looks like a cut; everything else is noticed.
    if (tables) {
      EXPECT_FALSE(tables->complete) << "byte " << at;
    }
  }
}

}  // namespace
}  // namespace malloscope::trace
