// SPDX-License-Identifier: Apache-2.0
// The collector's side of the lanes: what a well-behaved target writes comes out
// complete, and what a mad one writes does no harm.

#include "collect/drain.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <random>

#include "wire/event.h"

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
    unlink(path);
    file_ = std::make_unique<trace::FileWriter>(fd, path);
    drain_ = std::make_unique<Drain>(shared_, kSegments, file_.get());
    auto image = std::make_unique<DrainedImage>();
    image->id = ImageId{1};
    drain_->add_image(0, std::move(image));
  }
  ~DrainTest() override { munmap(memory_, bytes_); }

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
      if (random() % 2) word = (word & ~uint64_t{0xfff}) | random() % 9 << 4;
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
