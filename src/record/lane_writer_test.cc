// SPDX-License-Identifier: Apache-2.0
// What a thread has written to its lane, and was not told to count as lost, is read from it word by
// word: every event with its own alignment and no other's, also where segments run out.

#include "record/lane_writer.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <random>
#include <vector>

#include "record/process.h"

namespace malloscope::record {

constinit Inherited inherited = {};

namespace {

constexpr uint32_t kSegments = 3;

struct Told {
  wire::Kind kind;
  wire::Op op;
  uint64_t tick, address, size, stack, alignment_log2;
  bool operator==(const Told&) const = default;
};

class LaneWriterTest : public testing::Test {
 protected:
  LaneWriterTest() {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    inherited.shared = wire::SharedMemory(memory_);
    inherited.segment_count = kSegments;
    inherited.drop_when_full = true;
    process_ =
        mmap(nullptr, sizeof(Process), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    inherited.process = static_cast<Process*>(process_);
    lane_.open(1, 0);
  }
  ~LaneWriterTest() override {
    munmap(memory_, bytes_);
    munmap(process_, sizeof(Process));
  }

  // As the collector does: what is committed, and full segments back into the pool.
  void drain(std::vector<Told>* told) {
    if (segment_ == 0) segment_ = inherited.shared.lane(lane_.number() - 1).first.load();
    while (segment_ != 0) {
      wire::Segment& segment = inherited.shared.segment(segment_, kSegments);
      while (at_ < segment.committed.load()) read(segment.words, told);
      ASSERT_EQ(at_, segment.committed.load()) << "a record is there by half";
      ASSERT_EQ(alignment_, 0u) << "an alignment was committed without its event";
      if (segment.next.load() == wire::kNoSegment) return;
      inherited.shared.segment_owner(segment_).store(0);
      segment_ = segment.next.load();
      at_ = 0;
    }
  }

  LaneWriter lane_ = {};

 private:
  void read(const uint64_t* words, std::vector<Told>* told) {
    const uint64_t* w = words + at_;
    uint64_t tag = wire::word_tag(w[0]);
    if (tag == wire::kTagAlloc) {
      tick_ += wire::word_ticks(w[0]);
      tell(told, {wire::Kind::kAlloc, wire::block_op(w[1]), tick_, wire::word_address(w[0]),
                  wire::block_size(w[1]), raw(wire::block_stack(w[1])), 0});
      at_ += 2;
    } else if (tag >= wire::kTagFirstFree) {
      tick_ += wire::word_ticks(w[0]);
      auto op = static_cast<wire::Op>(tag - wire::kTagFirstFree + 16);
      tell(told, {wire::Kind::kFree, op, tick_, wire::word_address(w[0]), 0, 0, 0});
      at_ += 1;
    } else {
      ASSERT_EQ(tag, wire::kTagExtended);
      uint64_t payload = wire::extended_payload(w[0]);
      switch (wire::extended_kind(w[0])) {
        case wire::kTime:
          ASSERT_EQ(alignment_, 0u);
          tick_ = w[1];
          break;
        case wire::kAlignment:
          ASSERT_EQ(alignment_, 0u);
          alignment_ = payload;
          break;
        case wire::kWide:
          tick_ = w[1];
          tell(told, {static_cast<wire::Kind>(payload >> 8), static_cast<wire::Op>(payload & 0xff),
                      tick_, w[2], w[3], w[4], 0});
          break;
        default:
          FAIL() << "nobody has written that";
      }
      at_ += static_cast<uint32_t>(wire::extended_words(w[0]));
    }
  }
  void tell(std::vector<Told>* told, Told event) {
    event.alignment_log2 = std::exchange(alignment_, 0);
    told->push_back(event);
  }

  size_t bytes_ = wire::SharedMemory::bytes_for(kSegments);
  void *memory_, *process_;
  uint32_t segment_ = 0, at_ = 0;
  uint64_t tick_ = 0, alignment_ = 0;
};

TEST_F(LaneWriterTest, EveryEventHasItsOwnAlignment) {
  std::mt19937_64 random(1);
  std::vector<Told> written, read;
  uint64_t tick = 1'000'000, dropped = 0;
  for (int i = 0; i < 200'000; ++i) {
    tick += random() % 64 ? random() % 100 : 200'000;
    if (random() % 64 == 0) tick -= 50;  // The clock of another CPU.
    uint64_t address = random() % 16 ? 0x5555'0000'0000 + random() % 1000 * 16 : random();
    uint64_t size = random() % 16 ? random() % 1000 : random();
    auto stack = static_cast<uint32_t>(random() % 16 ? random() % 100 : random());
    Told event;
    bool ok;
    switch (random() % 3) {
      case 0:
        event = {wire::Kind::kFree, wire::Op::kDelete, tick, address, 0, 0, 0};
        ok = lane_.release(wire::kTagFirstFree + 4, event.op, tick, address);
        break;
      case 1:
        event = {wire::Kind::kAlloc, wire::Op::kMalloc, tick, address, size, stack, 0};
        ok = lane_.block(wire::kTagAlloc, event.op, tick, address, size, StackId{stack});
        break;
      default:
        event = {wire::Kind::kAlloc, wire::Op::kMemalign, tick, address, size, stack,
                 1 + random() % 40};
        ok = lane_.aligned_block(static_cast<uint8_t>(event.alignment_log2), event.op, tick,
                                 address, size, StackId{stack});
    }
    dropped += !ok;
    if (ok) {
      event.tick = tick = lane_.last_tick();
      written.push_back(event);
    }
    // Now and then the collector comes too late.
    if (random() % 700 == 0) drain(&read);
    if (HasFatalFailure()) return;
  }
  drain(&read);
  EXPECT_GT(dropped, 1000u);
  ASSERT_EQ(read.size(), written.size());
  for (size_t i = 0; i < read.size(); ++i) ASSERT_EQ(read[i], written[i]) << i;
}

}  // namespace
}  // namespace malloscope::record
