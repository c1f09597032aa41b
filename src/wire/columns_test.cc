// SPDX-License-Identifier: Apache-2.0
// Whatever events go into a chunk come out of it again, field by field, and
// bytes that no encoder wrote are refused.

#include <gtest/gtest.h>

#include <random>

#include "wire/decode.h"
#include "wire/encode.h"

namespace malloscope::wire {
namespace {

Event random_event(std::mt19937_64& random, uint64_t* tick) {
  Event e;
  *tick += random() % 8 ? random() % 100 : random() % 100'000'000;
  e.tick = *tick;
  bool regular = random() % 16;
  e.address = random() % 8 == 0 ? 0 : regular ? 0x5555'0000'0000 + random() % 64 * 16 : random();
  switch (random() % 7) {
    case 0:
      e.kind = Kind::kFree;
      e.op = static_cast<Op>(16 + random() % 8);
      if (e.address && random() % 2)
        e.stack = StackId{static_cast<uint32_t>(regular ? random() % 5 : random())};
      break;
    case 4:
      e.kind = Kind::kCallTime;
      e.address = 0;
      e.size = random() % (uint64_t{1} << 40);
      break;
    case 5:
      e.kind = Kind::kMark;
      e.address = 0;
      e.size = random() % 100'000;
      break;
    case 6:
      e.kind = Kind::kPassed;
      e.address = 0;
      break;
    case 1:
      e.kind = Kind::kReallocBegin;
      e.op = Op::kRealloc;
      break;
    case 2:
      e.kind = Kind::kReallocEnd;
      e.op = random() % 2 ? Op::kRealloc : Op::kReallocarray;
      break;
    default:
      e.kind = Kind::kAlloc;
      e.op = static_cast<Op>(random() % 13);
      if (is_aligned(e.op) && random() % 4) e.other = 1 + random() % kMaxAlignmentLog2;
  }
  if (e.kind == Kind::kAlloc || e.kind == Kind::kReallocEnd) {
    e.size = regular ? random() % 4 * 24 : random();
    e.stack = StackId{static_cast<uint32_t>(regular ? random() % 5 : random())};
  }
  return e;
}

void expect_same(const std::vector<Event>& wanted, const std::vector<Event>& given) {
  ASSERT_EQ(wanted.size(), given.size());
  for (size_t i = 0; i < wanted.size(); ++i) {
    const Event &a = wanted[i], &b = given[i];
    ASSERT_EQ(a.tick, b.tick) << i;
    ASSERT_EQ(a.address, b.address) << i;
    ASSERT_EQ(a.size, b.size) << i;
    ASSERT_EQ(a.other, b.other) << i;
    ASSERT_EQ(a.stack, b.stack) << i;
    ASSERT_EQ(a.image, b.image) << i;
    ASSERT_EQ(a.thread, b.thread) << i;
    ASSERT_EQ(a.kind, b.kind) << i;
    ASSERT_EQ(a.op, b.op) << i;
  }
}

TEST(Columns, GiveBackEveryFieldOfEveryEvent) {
  std::mt19937_64 random(1);
  EventEncoder encoder;
  EventDecoder decoder;
  for (int chunk = 0; chunk < 20; ++chunk) {
    std::vector<Event> events;
    uint64_t tick = random() % 1'000'000;
    for (int run = 0; run < 5; ++run) {
      ImageId image{static_cast<uint32_t>(1 + random() % 3)};
      ThreadId thread{static_cast<uint32_t>(1 + random() % 9)};
      encoder.start_run(image, thread, tick);
      for (size_t i = random() % 3000; i > 0; --i) {
        Event e = random_event(random, &tick);
        e.image = image;
        e.thread = thread;
        events.push_back(e);
        encoder.put(e);
      }
    }
    DecodedChunk back;
    ASSERT_TRUE(decoder.decode(encoder.finish(), &back));
    expect_same(events, back.events);
  }
}

// Whoever decodes in parts gets the same; and a part never ends within a tick, so that what follows
// is later.
TEST(Columns, AreTheSameInParts) {
  std::mt19937_64 random(2);
  EventEncoder encoder;
  EventDecoder decoder;
  for (uint32_t least : {1U, 2U, 7U, 1000U, UINT32_MAX}) {
    uint64_t tick = 1000;
    for (uint32_t run = 0; run < 4; ++run) {
      encoder.start_run(ImageId{1}, ThreadId{1 + run % 2}, tick);
      for (size_t i = random() % 2000; i > 0; --i) encoder.put(random_event(random, &tick));
    }
    std::vector<uint8_t> payload = encoder.finish();
    DecodedChunk whole, parts;
    ASSERT_TRUE(decoder.decode(payload, &whole));
    ASSERT_TRUE(decoder.begin(payload));
    EXPECT_FALSE(decoder.of_one_run());
    uint32_t thread = 0;
    while (decoder.more()) {
      size_t before = parts.events.size();
      ASSERT_TRUE(decoder.part(least, &parts));
      if (parts.events.size() == before) continue;  // Only what the next event is told ahead.
      ASSERT_EQ(parts.runs.back().first, before);
      ASSERT_EQ(parts.runs.back().first + parts.runs.back().count, parts.events.size());
      if (before > 0 && raw(parts.events[before].thread) == thread) {
        ASSERT_GT(parts.events[before].tick, parts.events[before - 1].tick);
      }
      thread = raw(parts.events[before].thread);
    }
    expect_same(whole.events, parts.events);
  }
}

TEST(Columns, RefuseAnAlignmentWithoutItsAllocation) {
  EventEncoder encoder;
  EventDecoder decoder;
  auto possible = [&](uint64_t log2, auto&& next) {
    encoder.start_run(ImageId{1}, ThreadId{1}, 5);
    encoder.alignment(6, log2);
    next();
    DecodedChunk out;
    return decoder.decode(encoder.finish(), &out);
  };
  auto by = [&](Op op) {
    return [&encoder, op] { encoder.block(static_cast<uint8_t>(op), 6, 0x1000, 100, 1); };
  };
  EXPECT_TRUE(possible(6, by(Op::kMemalign)));
  EXPECT_TRUE(possible(kMaxAlignmentLog2, by(Op::kNewArrayAligned)));
  EXPECT_FALSE(possible(0, by(Op::kMemalign)));
  EXPECT_FALSE(possible(kMaxAlignmentLog2 + 1, by(Op::kMemalign)));
  EXPECT_FALSE(possible(6, by(Op::kMalloc)));
  EXPECT_FALSE(possible(6, by(Op::kValloc)));
  EXPECT_FALSE(possible(6, [&] { encoder.release(kCodeFirstFree, 6, 0x1000); }));
  EXPECT_FALSE(possible(6, [&] { encoder.block(kCodeReallocEnd, 6, 0x1000, 100, 1); }));
  EXPECT_FALSE(possible(6, [&] { encoder.alignment(6, 6); }));
  EXPECT_FALSE(possible(6, [] {}));
  // It is not the next thread's either.
  EXPECT_FALSE(possible(6, [&] {
    encoder.start_run(ImageId{1}, ThreadId{2}, 6);
    by(Op::kMemalign)();
  }));
}

TEST(Alignment, IsRoundedUpAndNeverZero) {
  EXPECT_EQ(alignment_log2(0), 1);
  EXPECT_EQ(alignment_log2(1), 1);
  EXPECT_EQ(alignment_log2(2), 1);
  EXPECT_EQ(alignment_log2(3), 2);
  for (int log2 = 2; log2 < 63; ++log2) {
    uint64_t power = uint64_t{1} << log2;
    EXPECT_EQ(alignment_log2(power), log2);
    EXPECT_EQ(alignment_log2(power + 1), log2 + 1);
    EXPECT_EQ(alignment_log2(2 * power - 1), log2 + 1);
  }
  EXPECT_EQ(alignment_log2(uint64_t{1} << 63), 63);
  EXPECT_EQ(alignment_log2(UINT64_MAX), 63);  // No such block can be.
}

TEST(Columns, RefuseEveryCutPayload) {
  std::mt19937_64 random(2);
  EventEncoder encoder;
  uint64_t tick = 5;
  encoder.start_run(ImageId{1}, ThreadId{1}, tick);
  for (int i = 0; i < 200; ++i) encoder.put(random_event(random, &tick));
  std::vector<uint8_t> payload = encoder.finish();
  EventDecoder decoder;
  for (size_t size = 0; size < payload.size(); ++size) {
    DecodedChunk out;
    EXPECT_FALSE(decoder.decode(std::span(payload).first(size), &out)) << size;
  }
}

TEST(Columns, SurviveFlippedBytes) {
  std::mt19937_64 random(3);
  EventEncoder encoder;
  EventDecoder decoder;
  uint64_t tick = 5;
  for (int round = 0; round < 2000; ++round) {
    encoder.start_run(ImageId{1}, ThreadId{1}, tick);
    for (int i = 0; i < 50; ++i) encoder.put(random_event(random, &tick));
    std::vector<uint8_t> payload = encoder.finish();
    payload[random() % payload.size()] ^= static_cast<uint8_t>(1 + random() % 255);
    DecodedChunk out;
    decoder.decode(payload, &out);
    ASSERT_LE(out.events.size(), kMaxChunkEvents);
  }
}

}  // namespace
}  // namespace malloscope::wire
