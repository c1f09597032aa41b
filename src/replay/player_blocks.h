// SPDX-License-Identifier: Apache-2.0
// The blocks that are live, by slot; and with --verify, what is in them: each block is full of a
// mark of its own, so that one which was given out twice, overlaps another or has lost something
// shows.

#pragma once

#include <cstdint>

#include "replay/workload.h"

namespace malloscope::replay {

struct Slot {
  uint8_t* block = nullptr;
  uint64_t size = 0;
};
extern Slot* slots;
extern uint64_t* marks;  // With --verify: what each slot's block is filled with.

// Is it still full of its mark? If not, the player gives up; so do the others.
void check_block(const Slot& slot, uint64_t mark, uint32_t track, uint64_t op);
// What is left when all have ended.
void check_all();
// A new block, or one that was reallocated from `before`: is it as it should be? Then it gets its
// mark.
void fill_block(const Op& op, const Slot& before, uint8_t* made, uint64_t mark, uint32_t track,
                uint64_t done);

}  // namespace malloscope::replay
