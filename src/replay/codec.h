// SPDX-License-Identifier: Apache-2.0
// The operations of a track as columns of bytes, and back.
//
//     tag    1 byte an operation: the kind in the low half; in the high one, of what ends or
//     changes
//            a block, how many allocations ago the track made it
//     time   varint, of calls only: ticks since the track's call before
//     size   varint: bytes; the logarithm of the alignment follows. Of a wait, zigzag of how many
//            operations more than the last wait was for. Of the others, how many slots
//     slot   three columns, the lowest byte, the next one and a varint of what is above: an age, or
//            a slot if the track knows no age. Of a wait, the track
//
// A program frees the blocks that it made some time ago, and that time has more order in it than
// the numbers of slots. Bytes of a number that has none, such as a block picked at random, fill
// columns of their own without spoiling what is worth compressing.
//
// Used by the player, so nothing here takes from the heap.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/varint.h"
#include "replay/workload.h"

namespace malloscope::replay {

enum Column {
  kTagColumn,
  kTimeColumn,
  kSizeColumn,
  kSlotLowColumn,
  kSlotMiddleColumn,
  kSlotHighColumn,
};
static_assert(kSlotHighColumn + 1 == kColumns);

inline constexpr int kAgeShift = 4;
inline constexpr uint8_t kKindMask = 15;
// Ages, of a tag: those below kFresh are themselves, 0 the youngest.
inline constexpr uint8_t kFresh = 13;      // realloc(NULL, size).
inline constexpr uint8_t kOld = 14;        // How much more than kFresh is written.
inline constexpr uint8_t kElsewhere = 15;  // Another track made it, or it is too old: see the slot.
// So many of its own blocks a track remembers.
inline constexpr uint64_t kMostBirths = 1 << 20;

// Reads a track's operations out of the columns of its chunks. Any bytes may be given to it: what
// cannot be is found, and never a slot or a track beyond those there are.
class TrackDecoder {
 public:
  struct Limits {
    uint64_t slots = 0;
    uint32_t tracks = 0;
  };
  // Room for what the track's TrackPlace says: the most free slots that it has, and the births
  // that it remembers, which are a power of two.
  TrackDecoder(std::span<uint32_t> free_slots, std::span<uint32_t> births, Limits limits)
      : free_slots_(free_slots), births_(births), limits_(limits) {}

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
  uint64_t slot_number() {
    if (at_[kSlotLowColumn] == end_[kSlotLowColumn] ||
        at_[kSlotMiddleColumn] == end_[kSlotMiddleColumn]) [[unlikely]] {
      bad_ = true;
      return 0;
    }
    uint64_t low = *at_[kSlotLowColumn]++, middle = *at_[kSlotMiddleColumn]++;
    return number(kSlotHighColumn) << 16 | middle << 8 | low;
  }
  uint32_t written_slot() {
    uint64_t slot = slot_number();
    if (slot >= limits_.slots) [[unlikely]] {
      bad_ = true;
      return 0;
    }
    return static_cast<uint32_t>(slot);
  }
  // The slot of the block that the track made so many allocations ago.
  uint32_t made_before(uint64_t age) {
    if (age >= born_ || age >= births_.size()) [[unlikely]] {
      bad_ = true;
      return 0;
    }
    return births_[(born_ - 1 - age) & (births_.size() - 1)];
  }
  void made(uint32_t slot) {
    if (births_.empty()) [[unlikely]]
      bad_ = true;
    else
      births_[born_++ & (births_.size() - 1)] = slot;
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
  std::span<uint32_t> births_;  // The slots of the blocks made last, each at its number's place.
  uint64_t born_ = 0;
  uint64_t new_slots_ = 0;
  Limits limits_;
  uint64_t tick_ = 0, last_wait_ = 0;
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
  if (is_call(op->kind)) tick_ += number(kTimeColumn);
  op->tick = tick_;
  switch (op->kind) {
    case OpKind::kMalloc:
    case OpKind::kCalloc:
      op->size = number(kSizeColumn);
      made(op->slot = take());
      break;
    case OpKind::kMemalign:
    case OpKind::kAlignedAlloc:
    case OpKind::kPosixMemalign:
      op->size = number(kSizeColumn);
      op->alignment_log2 = static_cast<uint8_t>(number(kSizeColumn));
      bad_ |= op->alignment_log2 > kMaxAlignmentLog2;
      made(op->slot = take());
      break;
    case OpKind::kRealloc:
    case OpKind::kReallocToFree:
    case OpKind::kFree: {
      uint8_t age = tag >> kAgeShift;
      if (op->kind == OpKind::kRealloc) op->size = number(kSizeColumn);
      op->fresh = age == kFresh;
      if (op->fresh)
        op->slot = take();
      else if (age == kElsewhere)
        op->slot = written_slot();
      else
        op->slot = made_before(age == kOld ? kFresh + slot_number() : age);
      if (op->fresh && op->kind != OpKind::kRealloc) bad_ = true;
      if (op->kind == OpKind::kRealloc)
        made(op->slot);
      else
        put_back(op->slot);
      break;
    }
    case OpKind::kFreeNull:
    case OpKind::kNextThread:
    case OpKind::kBegin:
      break;
    case OpKind::kWait: {
      last_wait_ += static_cast<uint64_t>(unzigzag(number(kSizeColumn)));
      op->size = last_wait_;
      uint64_t track = slot_number();
      if (track >= limits_.tracks) bad_ = true;
      op->track = static_cast<uint16_t>(track);
      break;
    }
    case OpKind::kNewSlots:
      op->size = number(kSizeColumn);
      op->slot = written_slot();
      // A slot is new once, so that a few bytes cannot ask for endless work.
      if (op->size > kMostNewSlots || op->size > limits_.slots - op->slot ||
          (new_slots_ += op->size) > limits_.slots)
        bad_ = true;
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
