// SPDX-License-Identifier: Apache-2.0
// What all parts of the player stand on: the board that it shares with the tool, memory of its own,
// and how it gives up. All of this is there before the first call and does not change then.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "replay/board.h"

namespace malloscope::replay {

extern Board* board;
extern FileTail tail;
extern int workload;  // The file.

// Tells the tool what is wrong, and ends the player.
[[noreturn]] void give_up(Fault fault, uint64_t a = 0, uint64_t b = 0, uint32_t track = 0,
                          uint64_t op = 0);

// Memory of our own, touched: the heap that is measured has no part in it.
void* own_memory(size_t bytes);
inline std::span<uint32_t> own_numbers(size_t count) {
  return {static_cast<uint32_t*>(own_memory(count * sizeof(uint32_t))), count};
}

// Whole, or the player gives up.
void read_workload(uint64_t offset, void* bytes, size_t size);

// While the word is `seen`, but no longer than that.
void futex_wait(std::atomic<uint32_t>* word, uint32_t seen, uint64_t timeout_ns);
void futex_wake(std::atomic<uint32_t>* word);

}  // namespace malloscope::replay
