// SPDX-License-Identifier: Apache-2.0
// Events -> the columns of a chunk. See columns.h for the layout.

#pragma once

#include <zstd.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "wire/chunk.h"
#include "wire/columns.h"

namespace malloscope::wire {

class EventEncoder {
 public:
  EventEncoder();
  ~EventEncoder();
  EventEncoder(const EventEncoder&) = delete;
  EventEncoder& operator=(const EventEncoder&) = delete;

  // The events that follow are of this thread; ticks count from `tick`.
  void start_run(ImageId image, ThreadId thread, uint64_t tick);

  // At most kMaxChunkEvents between two calls of finish().
  void block(uint8_t code, uint64_t tick, uint64_t address, uint64_t size, uint32_t stack) {
    uint8_t tag = code;
    if (put_stack(stack)) tag |= kStackPredicted;
    if (size == predictor_.next_size(stack)) {
      tag |= kSizePredicted;
    } else {
      at_[kSizeColumn] = put_varint(at_[kSizeColumn], size);
      predictor_.saw_size(stack, size);
    }
    if (address == predictor_.last_freed()) {
      tag |= kAddressIsLastFreed;
    } else {
      put_address(address);
    }
    predictor_.saw_block(address);
    put_tag_and_time(tag, tick);
  }

  void release(uint8_t code, uint64_t tick, uint64_t address) {
    if (address == 0 && code >= kCodeFirstFree) {
      code = static_cast<uint8_t>(code - kCodeFirstFree + kCodeFirstFreeOfNull);
      return put_tag_and_time(code, tick);
    }
    uint8_t age = predictor_.age_of(address);
    if (age == kAgeUnknown) put_address(address);
    predictor_.saw_free(address);
    put_tag_and_time(static_cast<uint8_t>(code | age << kAgeShift), tick);
  }

  // Of the free that comes next, in the same run.
  void free_stack(uint64_t tick, uint32_t stack) {
    put_tag_and_time(put_stack(stack) ? kSameFreeStackTag : kFreeStackTag, tick);
  }
  // Of the thread's last call.
  void call_time(uint64_t tick, uint64_t cycles) {
    at_[kSizeColumn] = put_varint(at_[kSizeColumn], cycles);
    put_tag_and_time(kCallTimeTag, tick);
  }
  // Of the allocation that comes next, in the same run; is_aligned() must be true of its op.
  void alignment(uint64_t tick, uint64_t log2) {
    at_[kSizeColumn] = put_varint(at_[kSizeColumn], log2);
    put_tag_and_time(kAlignmentTag, tick);
  }

  void mark(uint64_t tick, uint64_t number) {
    at_[kSizeColumn] = put_varint(at_[kSizeColumn], number);
    put_tag_and_time(kMarkTag, tick);
  }

  void passed(uint64_t tick) { put_tag_and_time(kPassedTag, tick); }

  // What EventDecoder makes of a chunk, but mappings, put back; image and thread are the run's.
  void put(const Event& event) {
    uint8_t code = code_of(event.kind, event.op);
    if (event.kind == Kind::kCallTime) return call_time(event.tick, event.size);
    if (event.kind == Kind::kMark) return mark(event.tick, event.size);
    if (event.kind == Kind::kPassed) return passed(event.tick);
    if (event.kind == Kind::kAlloc && event.other != 0) alignment(event.tick, event.other);
    if (event.kind == Kind::kAlloc || event.kind == Kind::kReallocEnd)
      return block(code, event.tick, event.address, event.size, raw(event.stack));
    if (event.stack != StackId::kNone) free_stack(event.tick, raw(event.stack));
    release(code, event.tick, event.address);
  }

  // With what says more of them.
  uint32_t events() const { return events_; }
  uint64_t first_tick() const { return first_tick_; }
  uint64_t last_tick() const { return std::max(highest_tick_, last_tick_); }

  // The payload of a kEvents chunk; the encoder is empty afterwards.
  std::vector<uint8_t> finish();

 private:
  // Whether it was the one expected.
  bool put_stack(uint32_t stack) {
    bool expected = stack == predictor_.next_stack();
    if (!expected) {
      uint32_t highest = predictor_.highest_stack();
      at_[kStackColumn] =
          put_varint(at_[kStackColumn], stack == highest + 1 ? 0 : uint64_t{stack} + 1);
    }
    predictor_.saw_stack(stack);
    return expected;
  }
  void put_address(uint64_t address) {
    uint8_t*& at = at_[kAddressColumn];
    if (address & 15) {
      at = put_varint(at, 1);
      at = put_varint(at, address);
    } else {
      int64_t distance = static_cast<int64_t>(address - predictor_.previous_address()) / 16;
      at = put_varint(at, zigzag(distance) << 1);
      predictor_.wrote_address(address);
    }
  }
  void put_tag_and_time(uint8_t tag, uint64_t tick) {
    *at_[kTagColumn]++ = tag;
    uint64_t passed = tick - last_tick_;
    if (passed < kLate) {
      *at_[kTimeColumn]++ = static_cast<uint8_t>(passed);
    } else {
      *at_[kTimeColumn]++ = kLate;
      at_[kLateColumn] = put_varint(at_[kLateColumn], passed);
    }
    last_tick_ = tick;
    ++events_;
    ++run_events_;
  }
  void end_run();

  struct Run {
    ImageId image;
    ThreadId thread;
    uint32_t events;
    uint64_t tick;
  };
  Predictor predictor_;
  std::unique_ptr<uint8_t[]> columns_[kColumns];
  uint8_t* at_[kColumns];
  int rests_[kColumns] = {};  // Chunks for which a column is not compressed.
  std::vector<Run> runs_;
  uint32_t events_ = 0, run_events_ = 0;
  uint64_t first_tick_ = 0, last_tick_ = 0;
  uint64_t highest_tick_ = 0;  // Of the runs before.
  ZSTD_CCtx* zstd_;
};

// One zstd frame at the level that costs the collector least.
std::vector<uint8_t> compress(ZSTD_CCtx* context, std::span<const uint8_t> raw);

}  // namespace malloscope::wire
