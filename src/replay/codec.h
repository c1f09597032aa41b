// SPDX-License-Identifier: Apache-2.0
// The operations of a track as columns of bytes, and back. Encoder and decoder keep the same small
// memory, so it is defined here, once.
//
//     tag    1 byte an operation: the kind; of one that ends or changes a block also how many
//            allocations ago the track made it (0 to 5), 6: none, 7: see the column of slots
//     time   varint, of calls only: ticks since the track's call before
//     size   varint: bytes; the logarithm of the alignment follows. Of a wait, zigzag of how many
//            operations more than the last wait was for. Of the others, how many slots
//     slot   varint: zigzag of the distance from the last slot written here. Of a wait, the track
//
// Used by the player, so nothing here takes from the heap.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/varint.h"
#include "replay/workload.h"

namespace malloscope::replay {

enum Column { kTagColumn, kTimeColumn, kSizeColumn, kSlotColumn };

inline constexpr int kAgeShift = 4;
inline constexpr uint8_t kKindMask = 15;
inline constexpr uint8_t kAgeFresh = 6;
inline constexpr uint8_t kAgeUnknown = 7;

// What both sides know of a track. It does not end with a chunk: chunks are read in order.
struct TrackMemory {
  uint64_t tick = 0;
  uint32_t last_slot = 0;
  uint64_t last_wait = 0;

  void made(uint32_t slot) { recent_[++newest_ % 8] = slot; }
  uint32_t recent(unsigned age) const { return recent_[(newest_ - age) % 8]; }
  uint8_t age_of(uint32_t slot) const {
    for (uint8_t age = 0; age < kAgeFresh; ++age)
      if (recent(age) == slot) return age;
    return kAgeUnknown;
  }

 private:
  uint32_t recent_[8] = {~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
  uint32_t newest_ = 0;
};

// Reads a track's operations out of the columns of its chunks. Any bytes may be given to it: what
// cannot be is found, and never a slot or a track beyond those there are.
class TrackDecoder {
 public:
  struct Limits {
    uint64_t slots = 0;
    uint32_t tracks = 0;
  };
  // `free_slots` has room for the most that a track has.
  TrackDecoder(std::span<uint32_t> free_slots, Limits limits)
      : free_slots_(free_slots), limits_(limits) {}

  void open(const std::span<const uint8_t> (&columns)[kColumns], uint32_t ops) {
    for (int i = 0; i < kColumns; ++i) {
      at_[i] = columns[i].data();
      end_[i] = columns[i].data() + columns[i].size();
    }
    left_ = ops;
  }
  uint32_t left() const { return left_; }
  bool bad() const { return bad_; }

  // The next operations of the chunk; fewer than there is room for only at its end, or if the bytes
  // make no sense.
  size_t read(std::span<Op> ops);

 private:
  bool read_one(Op* op);
  uint64_t number(Column column) {
    uint64_t value = 0;
    const uint8_t* next = get_varint(at_[column], end_[column], &value);
    if (!next) [[unlikely]]
      bad_ = true;
    else
      at_[column] = next;
    return value;
  }
  uint32_t written_slot() {
    int64_t slot = int64_t{memory_.last_slot} + unzigzag(number(kSlotColumn));
    if (slot < 0 || static_cast<uint64_t>(slot) >= limits_.slots) {
      bad_ = true;
      return 0;
    }
    return memory_.last_slot = static_cast<uint32_t>(slot);
  }
  void put_back(uint32_t slot) {
    if (free_ == free_slots_.size())
      bad_ = true;
    else
      free_slots_[free_++] = slot;
  }
  uint32_t take() {
    if (free_ == 0) {
      bad_ = true;
      return 0;
    }
    return free_slots_[--free_];
  }

  std::span<uint32_t> free_slots_;
  size_t free_ = 0;
  Limits limits_;
  TrackMemory memory_;
  const uint8_t* at_[kColumns] = {};
  const uint8_t* end_[kColumns] = {};
  uint32_t left_ = 0;
  bool bad_ = false;
};

inline size_t TrackDecoder::read(std::span<Op> ops) {
  size_t count = 0;
  while (count < ops.size() && left_ > 0 && read_one(&ops[count])) {
    ++count;
    --left_;
  }
  return count;
}

inline bool TrackDecoder::read_one(Op* op) {
  if (at_[kTagColumn] == end_[kTagColumn]) bad_ = true;
  if (bad_) return false;
  uint8_t tag = *at_[kTagColumn]++;
  op->kind = static_cast<OpKind>(tag & kKindMask);
  op->fresh = false;
  if (is_call(op->kind)) memory_.tick += number(kTimeColumn);
  op->tick = memory_.tick;
  switch (op->kind) {
    case OpKind::kMalloc:
    case OpKind::kCalloc:
      op->size = number(kSizeColumn);
      memory_.made(op->slot = take());
      break;
    case OpKind::kMemalign:
    case OpKind::kAlignedAlloc:
    case OpKind::kPosixMemalign:
      op->size = number(kSizeColumn);
      op->alignment_log2 = static_cast<uint8_t>(number(kSizeColumn));
      bad_ |= op->alignment_log2 > kMaxAlignmentLog2;
      memory_.made(op->slot = take());
      break;
    case OpKind::kRealloc:
    case OpKind::kReallocToFree:
    case OpKind::kFree: {
      uint8_t age = tag >> kAgeShift & 7;
      if (op->kind == OpKind::kRealloc) op->size = number(kSizeColumn);
      op->fresh = age == kAgeFresh;
      op->slot = op->fresh ? take() : age == kAgeUnknown ? written_slot() : memory_.recent(age);
      if (op->fresh && op->kind != OpKind::kRealloc) bad_ = true;
      if (op->slot >= limits_.slots) bad_ = true;
      if (op->kind == OpKind::kRealloc)
        memory_.made(op->slot);
      else
        put_back(op->slot);
      break;
    }
    case OpKind::kFreeNull:
    case OpKind::kNextThread:
    case OpKind::kBegin:
      break;
    case OpKind::kWait: {
      memory_.last_wait += static_cast<uint64_t>(unzigzag(number(kSizeColumn)));
      op->size = memory_.last_wait;
      uint64_t track = number(kSlotColumn);
      if (track >= limits_.tracks) bad_ = true;
      op->track = static_cast<uint16_t>(track);
      break;
    }
    case OpKind::kNewSlots:
      op->size = number(kSizeColumn);
      op->slot = written_slot();
      if (op->size > limits_.slots - op->slot) bad_ = true;
      for (uint64_t i = op->size; !bad_ && i-- > 0;) put_back(static_cast<uint32_t>(op->slot + i));
      break;
    case OpKind::kDropSlots:
      op->size = number(kSizeColumn);
      if (op->size > free_)
        bad_ = true;
      else
        free_ -= op->size;
      break;
    case OpKind::kTakeSlot:
      put_back(op->slot = written_slot());
      break;
    default:
      bad_ = true;
  }
  return !bad_;
}

}  // namespace malloscope::replay
