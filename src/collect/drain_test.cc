// SPDX-License-Identifier: Apache-2.0
// The collector's side of the lanes: what a well-behaved target writes comes out
// complete, and what a mad one writes does no harm.

#include "collect/drain.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "trace/file_reader.h"
#include "wire/decode.h"
#include "wire/event.h"
#include "wire/stacks.h"

namespace malloscope::collect {
namespace {

constexpr uint32_t kSegments = 64;

class DrainTest : public testing::Test {
 protected:
  DrainTest() {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_ = wire::SharedMemory(memory_);
    char path[] = "/tmp/malloscope-drain-XXXXXX";
    int fd = mkstemp(path);
    path_ = path;
    file_ = std::make_unique<trace::FileWriter>(fd, path);
    drain_ = std::make_unique<Drain>(shared_, kSegments, file_.get());
    auto image = std::make_unique<DrainedImage>();
    image->id = ImageId{1};
    drain_->add_image(0, std::move(image));
  }
  ~DrainTest() override {
    unlink(path_.c_str());
    munmap(memory_, bytes_);
  }

  // A lane of image slot 0 with one segment.
  wire::Segment& open_lane(uint32_t lane, uint32_t segment) {
    wire::LaneSlot& slot = shared_.lane(lane);
    slot.owner.store(1);
    slot.tid = static_cast<int>(100 + lane);
    slot.state.store(static_cast<uint32_t>(wire::LaneState::kLive));
    shared_.segment_owner(segment).store(lane + 1);
    slot.first.store(segment);
    return shared_.segment(segment, kSegments);
  }
  uint32_t owned_segments() {
    uint32_t count = 0;
    for (uint32_t s = 1; s <= kSegments; ++s) count += shared_.segment_owner(s).load() != 0;
    return count;
  }

  // All that was written so far.
  std::vector<wire::Event> written() {
    wire::DecodedChunk chunks;
    wire::EventDecoder decoder;
    auto reader = trace::FileReader::open(path_);
    trace::Chunk chunk = {};
    while (*reader->next(&chunk) == trace::Next::kChunk) {
      if (chunk.type != wire::ChunkType::kEvents) continue;
      EXPECT_TRUE(decoder.decode(chunk.payload, &chunks));
    }
    return chunks.events;
  }

  // The ids of the stacks, in the order in which they were defined.
  std::vector<uint32_t> defined() {
    std::vector<uint32_t> ids;
    wire::StackDecoder decoder;
    auto reader = trace::FileReader::open(path_);
    trace::Chunk chunk = {};
    while (*reader->next(&chunk) == trace::Next::kChunk) {
      if (chunk.type != wire::ChunkType::kStacks) continue;
      wire::Unpacker in(chunk.payload);
      in.number();  // The image.
      EXPECT_TRUE(decoder.decode(in, [&](const wire::StackDefinition& definition) {
        ids.push_back(raw(definition.id));
        return true;
      }));
    }
    return ids;
  }

  std::string path_;
  size_t bytes_ = wire::SharedMemory::bytes_for(kSegments);
  void* memory_;
  wire::SharedMemory shared_;
  std::unique_ptr<trace::FileWriter> file_;
  std::unique_ptr<Drain> drain_;
};

TEST_F(DrainTest, TakesOnlyWhatIsCommittedAndEarlyEnough) {
  wire::Segment& segment = open_lane(3, 7);
  uint32_t used = 0;
  for (int i = 0; i < 10; ++i)
    segment.words[used++] = wire::short_word(wire::kTagFirstFree, 0x1000, 10);
  segment.committed.store(8);
  drain_->pass(55);  // Five events are stamped before tick 55.
  EXPECT_EQ(drain_->events(), 5u);
  drain_->pass(1000);
  EXPECT_EQ(drain_->events(), 8u);
  segment.committed.store(10);
  drain_->pass(1000);
  EXPECT_EQ(drain_->events(), 10u);
}

// Its thread was interrupted between stamp and commit, or stamps several events alike.
TEST_F(DrainTest, TellsOfNothingBeforeThePassThatDidNotSeeIt) {
  wire::Segment& segment = open_lane(3, 7);
  uint32_t used = 0;
  auto put_free = [&](uint64_t ticks) {
    segment.words[used++] = wire::short_word(wire::kTagFirstFree, 0x1000, ticks);
    segment.committed.store(used);
  };
  auto ticks = [&] {
    std::vector<uint64_t> found;
    for (const wire::Event& event : written()) found.push_back(event.tick);
    return found;
  };
  put_free(10);
  drain_->pass(50);
  put_free(5);   // At 15.
  put_free(20);  // At 35.
  put_free(30);  // At 65.
  drain_->pass(100);
  EXPECT_EQ(ticks(), (std::vector<uint64_t>{10, 50, 50, 65}));
  drain_->pass(200);
  put_free(5);  // At 70.
  std::unique_ptr<DrainedImage> image = drain_->take_out(0);
  EXPECT_EQ(ticks().back(), 200u);
  EXPECT_EQ(image->last_tick, 200u);
}

TEST_F(DrainTest, KnowsWhenAnImageWasLastHeardOf) {
  wire::Segment& segment = open_lane(3, 7);
  segment.words[0] = wire::short_word(wire::kTagFirstFree, 0x1000, 10);
  segment.committed.store(1);
  drain_->pass(50);
  EXPECT_EQ(drain_->take_out(0)->last_tick, 10u);
}

// An event may name a stack that another thread has defined since its own lane was read.
TEST_F(DrainTest, TakesDefinitionsThatComeAfterItsTimeButOnce) {
  wire::Segment& segment = open_lane(3, 7);
  uint32_t used = 0;
  auto put_free = [&](uint64_t ticks) {
    segment.words[used++] = wire::short_word(wire::kTagFirstFree, 0x1000, ticks);
  };
  auto put_stack = [&](wire::Segment& to, uint32_t* at, uint64_t id) {
    to.words[(*at)++] = wire::extended_word(wire::kStack, 4, 0);
    to.words[(*at)++] = id << 32;
    to.words[(*at)++] = 0;
    to.words[(*at)++] = 0x4000 + id;
  };
  put_stack(segment, &used, 1);
  put_free(10);
  put_free(90);  // At 100: for the next pass.
  put_stack(segment, &used, 2);
  put_free(10);
  segment.committed.store(used);
  drain_->pass(50);
  EXPECT_EQ(drain_->events(), 1u);
  EXPECT_EQ(defined(), (std::vector<uint32_t>{1, 2}));
  // In a segment that the lane has not come to.
  put_stack(segment, &used, 3);
  segment.committed.store(used);
  shared_.segment_owner(9).store(4);
  segment.next.store(9);
  wire::Segment& next = shared_.segment(9, kSegments);
  uint32_t used_of_next = 0;
  put_stack(next, &used_of_next, 4);
  next.words[used_of_next++] = wire::short_word(wire::kTagFirstFree, 0x1000, 10);
  next.committed.store(used_of_next);
  drain_->pass(50);
  EXPECT_EQ(drain_->events(), 1u);
  EXPECT_EQ(defined(), (std::vector<uint32_t>{1, 2, 3, 4}));
  put_stack(next, &used_of_next, 5);
  next.committed.store(used_of_next);
  drain_->pass(115);
  drain_->pass(1000);
  EXPECT_EQ(drain_->events(), 4u);
  EXPECT_EQ(defined(), (std::vector<uint32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(owned_segments(), 1u);
  EXPECT_EQ(drain_->image(0)->garbled_lanes, 0u);
}

// The words of an event, short and long.
std::vector<uint64_t> short_block(wire::Op op, uint64_t ticks) {
  return {wire::short_word(wire::kTagAlloc, 0x1000, ticks), wire::block_word(StackId{1}, op, 100)};
}
std::vector<uint64_t> wide_block(wire::Kind kind, wire::Op op, uint64_t tick) {
  uint64_t payload = static_cast<uint64_t>(kind) << 8 | static_cast<uint64_t>(op);
  return {wire::extended_word(wire::kWide, 5, payload), tick, 0x1008, uint64_t{5} << 32, 1};
}

TEST_F(DrainTest, TakesAnAlignmentForTheNextAllocationAlone) {
  using wire::Op;
  wire::Segment& segment = open_lane(3, 7);
  uint32_t used = 0;
  auto put = [&](const std::vector<uint64_t>& words) {
    for (uint64_t word : words) segment.words[used++] = word;
  };
  auto align = [&](uint64_t log2) { put({wire::extended_word(wire::kAlignment, 1, log2)}); };
  align(6), put(short_block(Op::kMemalign, 10));
  put(short_block(Op::kMemalign, 10));
  align(8), put(short_block(Op::kAlignedAlloc, 80));  // In the next pass.
  put(short_block(Op::kMalloc, 0));
  align(12), put(wide_block(wire::Kind::kAlloc, Op::kPosixMemalign, 300));
  put(wide_block(wire::Kind::kAlloc, Op::kNewAligned, 300));
  segment.committed.store(used);
  drain_->pass(55);
  EXPECT_EQ(drain_->events(), 2u);
  drain_->pass(200);
  EXPECT_EQ(drain_->events(), 4u);
  drain_->pass(1000);
  std::vector<uint64_t> alignments;
  for (const wire::Event& event : written()) alignments.push_back(event.other);
  EXPECT_EQ(alignments, (std::vector<uint64_t>{6, 0, 8, 0, 12, 0}));
  EXPECT_EQ(drain_->image(0)->garbled_lanes, 0u);
}

TEST_F(DrainTest, GivesUpALaneWhoseAlignmentIsNobodys) {
  using wire::Kind;
  using wire::Op;
  auto align = [](uint64_t log2) { return wire::extended_word(wire::kAlignment, 1, log2); };
  std::vector<std::vector<uint64_t>> all = {
      {align(6), wire::short_word(wire::kTagFirstFree, 0x1000, 1)},
      {align(6), align(6)},
      {align(6), wire::extended_word(wire::kTime, 2), 7},
      {align(6), wire::extended_word(wire::kFreeStack, 1, 7)},
      {align(0), align(0)},
      {align(64), align(64)},
  };
  auto after_alignment = [&](std::vector<uint64_t> words) {
    words.insert(words.begin(), align(6));
    all.push_back(words);
  };
  after_alignment(short_block(Op::kMalloc, 1));
  after_alignment(short_block(Op::kPvalloc, 1));
  after_alignment(wide_block(Kind::kAlloc, Op::kNew, 1));
  after_alignment(wide_block(Kind::kFree, Op::kFree, 1));
  after_alignment(wide_block(Kind::kReallocEnd, Op::kRealloc, 1));
  for (uint32_t i = 0; i < all.size(); ++i) {
    wire::Segment& segment = open_lane(i, i + 1);
    std::copy(all[i].begin(), all[i].end(), segment.words);
    segment.committed.store(static_cast<uint32_t>(all[i].size()));
    drain_->pass(1000);
    EXPECT_EQ(drain_->image(0)->garbled_lanes, i + 1) << i;
  }
  EXPECT_EQ(drain_->events(), 0u);
  EXPECT_TRUE(written().empty());
}

TEST_F(DrainTest, GivesBackEverythingAnImageOwned) {
  wire::Segment& first = open_lane(0, 1);
  shared_.segment_owner(2).store(1);
  first.next.store(2);
  shared_.segment_owner(9).store(1);  // Taken, but the process died before it was linked.
  shared_.lane(0).dropped.store(5);
  open_lane(1, 3);
  auto image = drain_->take_out(0);
  EXPECT_EQ(owned_segments(), 0u);
  EXPECT_EQ(shared_.lane(0).owner.load(), 0u);
  EXPECT_EQ(shared_.lane(1).owner.load(), 0u);
  EXPECT_EQ(image->lost, 5u);
}

TEST_F(DrainTest, SurvivesAMadTarget) {
  std::mt19937_64 random(1);
  for (int round = 0; round < 300; ++round) {
    wire::Segment& segment = open_lane(0, 1);
    for (uint64_t& word : segment.words) {
      word = random();
      // Make the rare kinds common.
      if (random() % 2) word = (word & ~uint64_t{0xfff}) | random() % 12 << 4;
      if (random() % 2) word = word & ~(uint64_t{0xff0} << 12);
    }
    segment.committed.store(static_cast<uint32_t>(random()));
    segment.next.store(random() % 2 ? static_cast<uint32_t>(random() % 80) : 0);
    shared_.lane(0).first.store(random() % 4 ? 1 : static_cast<uint32_t>(random()));
    drain_->pass(UINT64_MAX);
    auto image = drain_->take_out(0);
    ASSERT_EQ(owned_segments(), 0u);
    auto fresh = std::make_unique<DrainedImage>();
    fresh->id = ImageId{1};
    drain_->add_image(0, std::move(fresh));
  }
}

}  // namespace
}  // namespace malloscope::collect
