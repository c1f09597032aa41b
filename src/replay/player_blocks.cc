// SPDX-License-Identifier: Apache-2.0
#include "replay/player_blocks.h"

#include "replay/player_base.h"

namespace malloscope::replay {

Slot* slots;
uint64_t* marks;

static uint8_t byte_of(uint64_t mark, uint64_t at) {
  return static_cast<uint8_t>(mark >> at % 8 * 8);
}

void check_block(const Slot& slot, uint64_t mark, uint32_t track, uint64_t op) {
  for (uint64_t i = 0; i < slot.size; ++i)
    if (slot.block[i] != byte_of(mark, i)) give_up(Fault::kOverwritten, slot.size, i, track, op);
}

void check_all() {
  for (uint64_t i = 0; i < tail.slots; ++i)
    if (slots[i].block) check_block(slots[i], marks[i], 0, kAtTheEnd);
}

void fill_block(const Op& op, const Slot& before, uint8_t* made, uint64_t mark, uint32_t track,
                uint64_t done) {
  uint64_t alignment = is_aligned(op.kind) ? uint64_t{1} << op.alignment_log2
                       : op.size >= 16     ? 16
                                           : 8;
  if (reinterpret_cast<uintptr_t>(made) % alignment != 0)
    give_up(Fault::kMisaligned, op.size, alignment, track, done);
  if (op.kind == OpKind::kCalloc)
    for (uint64_t i = 0; i < op.size; ++i)
      if (made[i] != 0) give_up(Fault::kNotZero, op.size, i, track, done);
  if (op.kind == OpKind::kRealloc && before.block)
    for (uint64_t i = 0; i < before.size && i < op.size; ++i)
      if (made[i] != byte_of(marks[op.slot], i))
        give_up(Fault::kNotCopied, op.size, i, track, done);
  marks[op.slot] = mark;
  for (uint64_t i = 0; i < op.size; ++i) made[i] = byte_of(mark, i);
}

}  // namespace malloscope::replay
