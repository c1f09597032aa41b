// SPDX-License-Identifier: Apache-2.0
// The events of one chunk as columns. Encoder and decoder keep the same small
// memory of what came before (see Predictor), so it is defined here, once.
//
// A chunk holds runs; a run is a stretch of one thread's events in one epoch:
//
//     runs      per run: image, thread, number of events, tick of the first
//     tag       1 byte an event: what it is, and what of it was predicted
//     time      1 byte an event: ticks since the one before; 255: see late
//     late      varint: ticks that did not fit in a byte
//     stack     varint: 0 = one more than the highest so far, else id + 1
//     size      varint
//     address   varint: zigzag of the distance / 16 from the last address written here, times 2;
//               odd: the exact address follows instead (it was not a multiple of 16)
//
// Each column is compressed by itself: bytes of one kind compress better than
// mixed ones, and a reader that needs no addresses need not unpack them.

#pragma once

#include <array>
#include <cstdint>
#include <cstring>

#include "wire/event.h"

namespace malloscope::wire {

enum Column {
  kTagColumn,
  kTimeColumn,
  kLateColumn,
  kStackColumn,
  kSizeColumn,
  kAddressColumn,
  kColumns
};

// Low five bits of a tag: an allocating entry point (0-12), or one of these, or
// the number of a freeing entry point (16-23), or 8 more if it was given a null pointer.
inline constexpr uint8_t kCodeReallocEnd = 13;
inline constexpr uint8_t kCodeReallocarrayEnd = 14;
inline constexpr uint8_t kCodeReallocBegin = 15;
inline constexpr uint8_t kCodeFirstFree = 16;
inline constexpr uint8_t kCodeFirstFreeOfNull = 24;  // C++ programs delete many null pointers.
inline constexpr uint8_t kCodeMask = 31;

// High three bits. Of an event that makes a block: what was predicted.
inline constexpr uint8_t kStackPredicted = 32;
inline constexpr uint8_t kSizePredicted = 64;
inline constexpr uint8_t kAddressIsLastFreed = 128;
// Of an event that ends one: how many allocations ago the thread made it, 7 if none of the last 7.
inline constexpr int kAgeShift = 5;
inline constexpr uint8_t kAgeUnknown = 7;

// A free of a null pointer has neither, so these are told by its high bits. They are not events
// of their own but say more of one: where the free that follows was called (as an allocation's
// stack is), how many cycles the call before took (in the column of sizes), and log2 of the
// alignment that the next event, an allocation, asked for (there too, before the event's own size).
inline constexpr uint8_t kFreeStackTag = kCodeFirstFreeOfNull | 1 << kAgeShift;
inline constexpr uint8_t kSameFreeStackTag = kCodeFirstFreeOfNull | 2 << kAgeShift;
inline constexpr uint8_t kCallTimeTag = kCodeFirstFreeOfNull | 3 << kAgeShift;
inline constexpr uint8_t kAlignmentTag = kCodeFirstFreeOfNull | 4 << kAgeShift;
// And where among the thread's calls a mark stands, by its number (in the column of sizes).
inline constexpr uint8_t kMarkTag = kCodeFirstFreeOfNull | 5 << kAgeShift;

// And that the thread has made a block which is not in the sample.
inline constexpr uint8_t kPassedTag = kCodeFirstFreeOfNull | 6 << kAgeShift;

inline constexpr uint8_t kLate = 255;

inline uint8_t code_of(Kind kind, Op op) {
  switch (kind) {
    case Kind::kAlloc:
      return static_cast<uint8_t>(op);
    case Kind::kReallocEnd:
      return op == Op::kReallocarray ? kCodeReallocarrayEnd : kCodeReallocEnd;
    case Kind::kReallocBegin:
      return kCodeReallocBegin;
    default:
      return static_cast<uint8_t>(op);  // Frees are numbered from 16.
  }
}

// What both sides remember within a chunk. Programs repeat themselves: the stack
// that follows two given stacks is usually the one that followed them last time,
// and a stack usually asks for the size it asked for last time.
class Predictor {
 public:
  void start_chunk() {
    after_.fill(0);
    size_of_.fill(0);
    highest_stack_ = 0;
  }
  void start_run() {
    last_stack_ = before_last_ = 0;
    previous_address_ = last_freed_ = 0;
    recent_.fill(0);
    newest_ = 0;
  }

  uint32_t next_stack() const { return after_[context()]; }
  void saw_stack(uint32_t stack) {
    after_[context()] = stack;
    before_last_ = last_stack_;
    last_stack_ = stack;
    if (stack > highest_stack_) highest_stack_ = stack;
  }
  uint32_t highest_stack() const { return highest_stack_; }

  uint64_t next_size(uint32_t stack) const { return size_of_[stack % kEntries]; }
  void saw_size(uint32_t stack, uint64_t size) { size_of_[stack % kEntries] = size; }

  uint64_t previous_address() const { return previous_address_; }
  void wrote_address(uint64_t address) { previous_address_ = address; }

  uint64_t last_freed() const { return last_freed_; }
  void saw_free(uint64_t address) { last_freed_ = address; }

  // The block made `age` allocations ago.
  uint64_t made(unsigned age) const { return recent_[(newest_ - age) % 8]; }
  void saw_block(uint64_t address) { recent_[++newest_ % 8] = address; }
  uint8_t age_of(uint64_t address) const {
    for (uint8_t age = 0; age < kAgeUnknown; ++age)
      if (made(age) == address) return age;
    return kAgeUnknown;
  }

 private:
  static constexpr uint32_t kEntries = 1 << 14;
  uint32_t context() const {
    uint32_t mixed = last_stack_ * 0x9e3779b1u ^ before_last_ * 0x85ebca6bu;
    return (mixed ^ mixed >> 15) % kEntries;
  }

  std::array<uint32_t, kEntries> after_;
  std::array<uint64_t, kEntries> size_of_;
  uint32_t last_stack_ = 0, before_last_ = 0, highest_stack_ = 0;
  uint64_t previous_address_ = 0, last_freed_ = 0;
  std::array<uint64_t, 8> recent_;
  uint32_t newest_ = 0;
};

}  // namespace malloscope::wire
