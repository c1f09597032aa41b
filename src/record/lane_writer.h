// SPDX-License-Identifier: Apache-2.0
// A thread's end of its lane: appends records, takes a new segment when one is
// full, and waits or drops when there is none. A record is committed by one
// store, so that it is there whole or not at all, whenever the process is killed.

#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "base/attributes.h"
#include "base/ids.h"
#include "wire/event.h"
#include "wire/lane.h"

namespace malloscope::record {

class LaneWriter {
 public:
  // Takes a lane for the calling thread. False if there is none.
  bool open(int tid, uint32_t nesting);
  // The thread ends: the collector may have the lane once it has read it.
  void close();
  bool is_open() const { return lane_ != 0; }

  // An event that makes a block (tag kTagAlloc or kTagReallocEnd).
  MSCOPE_FAST bool block(wire::Tag tag, wire::Op op, uint64_t tick, uint64_t address, uint64_t size,
                         StackId stack) {
    uint64_t ticks = tick - last_tick_;
    if (fits_short(address, ticks, size, stack) && used_ + 2 <= limit_) [[likely]] {
      uint64_t* at = words_ + used_;
      at[0] = wire::short_word(tag, address, ticks);
      at[1] = wire::block_word(stack, op, size);
      commit(2, tick);
      return true;
    }
    wire::Kind kind = tag == wire::kTagAlloc ? wire::Kind::kAlloc : wire::Kind::kReallocEnd;
    return wide(kind, op, tick, address, size, stack);
  }

  // An allocation by an aligned entry point. The alignment and the event are there together or not
  // at all.
  bool aligned_block(uint8_t alignment_log2, wire::Op op, uint64_t tick, uint64_t address,
                     uint64_t size, StackId stack);

  // An event that ends one: a free, or with tag kTagReallocBegin the first half of a realloc.
  MSCOPE_FAST bool release(uint64_t tag, wire::Op op, uint64_t tick, uint64_t address) {
    uint64_t ticks = tick - last_tick_;
    if (wire::fits_short(address, ticks) && used_ + 1 <= limit_) [[likely]] {
      words_[used_] = wire::short_word(tag, address, ticks);
      commit(1, tick);
      return true;
    }
    wire::Kind kind = tag == wire::kTagReallocBegin ? wire::Kind::kReallocBegin : wire::Kind::kFree;
    return wide(kind, op, tick, address, 0, StackId::kNone);
  }

  // Room for `words` more without another segment, so that what follows cannot fail.
  MSCOPE_FAST bool reserve(uint32_t words) {
    return used_ + words <= limit_ || next_segment(words);
  }

  bool mapping(wire::Op op, uint8_t flags, uint64_t tick, uint64_t address, uint64_t size,
               StackId stack, uint64_t other);
  // Room for it must have been reserved.
  void stack(StackId id, StackId owner, uint32_t kept, uint32_t generation, uint64_t flags,
             std::span<const uintptr_t> fresh);
  static uint32_t stack_words(std::span<const uintptr_t> fresh) {
    return static_cast<uint32_t>(3 + fresh.size());
  }
  bool module(uint64_t start, uint64_t end, uint64_t bias, uint32_t generation,
              std::span<const uint8_t> build_id, std::span<const char> path);
  bool thread_name(const char name[16]);
  bool mark(wire::MarkKind kind, uint64_t tick, std::span<const char> name);
  bool not_followed(const char* program, uint64_t why);

  // Of the free that comes next, and of the call that came last.
  bool free_stack(StackId stack);
  bool call_time(uint64_t cycles);
  bool passed_over();
  bool cpu_sample(uint64_t tick, uint64_t nanoseconds, StackId stack, uint64_t flags);

  void count_drop();

  uint64_t last_tick() const { return last_tick_; }
  uint32_t number() const { return lane_; }

 private:
  MSCOPE_FAST static bool fits_short(uint64_t address, uint64_t ticks, uint64_t size,
                                     StackId stack) {
    return wire::fits_short(address, ticks) && size <= wire::kMaxShortSize &&
           raw(stack) <= wire::kMaxShortStack;
  }
  MSCOPE_FAST void commit(uint32_t words, uint64_t tick) {
    used_ += words;
    last_tick_ = tick;
    segment_->committed.store(used_, std::memory_order_release);
  }
  MSCOPE_SLOW bool wide(wire::Kind kind, wire::Op op, uint64_t tick, uint64_t address,
                        uint64_t size, StackId stack);
  MSCOPE_SLOW bool next_segment(uint32_t words);

  uint64_t* words_;
  wire::Segment* segment_;
  uint32_t used_;
  uint32_t limit_;
  uint64_t last_tick_;
  uint32_t lane_;  // 1 + its slot, or 0.
  uint32_t segment_number_;
};

}  // namespace malloscope::record
