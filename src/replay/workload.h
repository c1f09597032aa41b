// SPDX-License-Identifier: Apache-2.0
// The calls of a program without the program: what each thread asks of an allocator, in order,
// with neither stacks nor addresses. This is what the planner writes and the player performs.
//
// A block is known by its *slot*, a place in one table of pointers that all threads share. A slot
// is used again when its block is gone, so the table is as large as the heap was at its fullest.
// Which slot a new block gets is not written down: every track keeps a stack of free slots, a new
// block takes the one on top, and one that is freed is put back there. What moves slots between
// the tracks is said by operations of their own.
//
// A *track* is what one thread of the player does. Threads that never ran at the same time share
// one, so there are as many as there were threads at once. An operation that needs what another
// track did comes after a kWait for that; operations are counted from 1 on every track, waits and
// all, and the count is what is waited for.
//
// docs/workload_format.md describes every byte. Used by the player, so nothing here takes from
// the heap.

#pragma once

#include <cstdint>

namespace malloscope::replay {

enum class OpKind : uint8_t {
  kMalloc = 0,
  kCalloc,
  kMemalign,
  kAlignedAlloc,
  kPosixMemalign,
  kRealloc,        // Of a slot's block; of a fresh slot: realloc(NULL, size).
  kReallocToFree,  // realloc(block, 0) that freed it.
  kFree,
  kFreeNull,
  // Those below are no calls.
  kWait,        // Until `track` has done `count` operations.
  kNewSlots,    // `count` slots from `slot` on are free now, the first of them on top.
  kDropSlots,   // The `count` free slots on top are no longer this track's ...
  kTakeSlot,    // ... and this one now is.
  kNextThread,  // What follows was done by another thread.
  kBegin,       // What came before only builds the heap up; what follows is measured.
};
inline constexpr int kOpKinds = 15;
inline constexpr int kCallKinds = 9;
// More than an address has.
inline constexpr uint8_t kMaxAlignmentLog2 = 47;

constexpr bool is_call(OpKind kind) { return static_cast<int>(kind) < kCallKinds; }
constexpr bool makes_block(OpKind kind) { return kind <= OpKind::kPosixMemalign; }
constexpr bool is_aligned(OpKind kind) {
  return kind >= OpKind::kMemalign && kind <= OpKind::kPosixMemalign;
}

// What figures are told apart by; a name of `calls` and `cycles` in JSON.
enum class CallGroup : uint8_t { kMalloc, kCalloc, kRealloc, kMemalign, kFree };
inline constexpr int kCallGroups = 5;
inline constexpr const char* kCallGroupNames[kCallGroups] = {"malloc", "calloc", "realloc",
                                                             "memalign", "free"};
constexpr CallGroup group_of(OpKind kind) {
  switch (kind) {
    case OpKind::kMalloc:
      return CallGroup::kMalloc;
    case OpKind::kCalloc:
      return CallGroup::kCalloc;
    case OpKind::kMemalign:
    case OpKind::kAlignedAlloc:
    case OpKind::kPosixMemalign:
      return CallGroup::kMemalign;
    case OpKind::kRealloc:
    case OpKind::kReallocToFree:
      return CallGroup::kRealloc;
    default:
      return CallGroup::kFree;
  }
}

struct Op {
  OpKind kind = OpKind::kMalloc;
  uint8_t alignment_log2 = 0;  // Of the aligned kinds.
  bool fresh = false;          // kRealloc: of no block.
  uint16_t track = 0;          // kWait.
  uint32_t slot = 0;
  uint64_t size = 0;  // Bytes; or `count`, of the kinds that have one.
  uint64_t tick = 0;  // Since the beginning of the workload.
};

// The file: a FileHead, then chunks, then a ChunkPlace for each of them, then a TrackPlace for each
// track, then a FileTail. Numbers are little-endian.
inline constexpr char kWorkloadMagic[8] = {'M', 'W', 'O', 'R', 'K', '0', '3', '\n'};
inline constexpr int kMagicName = 5;  // The version stands behind that.
inline constexpr char kTailMagic[8] = {'M', 'W', 'O', 'R', 'K', 'e', 'n', 'd'};
inline constexpr uint32_t kMaxTracks = 1 << 14;
inline constexpr uint32_t kMaxChunkOps = 1 << 15;
// Of one kNewSlots.
inline constexpr uint64_t kMostNewSlots = 4096;
// A chunk is six columns, each one a zstd frame: see codec.h.
inline constexpr int kColumns = 6;

struct FileHead {
  char magic[8];
};

// Where a chunk is. Each belongs to one track; those of a track are in order.
struct ChunkPlace {
  uint64_t offset = 0;
  uint32_t stored_bytes[kColumns] = {};
  uint32_t raw_bytes[kColumns] = {};
  uint32_t ops = 0;
  uint32_t track = 0;
  uint64_t checksum = 0;  // XXH3 of the stored bytes.
};
static_assert(sizeof(ChunkPlace) == 72);

struct TrackPlace {
  uint64_t ops = 0;
  uint64_t most_free_slots = 0;  // On its stack.
  uint64_t births = 0;           // That it remembers; 0 or a power of two.
};
static_assert(sizeof(TrackPlace) == 24);

// What is to be known before the first operation.
struct FileTail {
  uint64_t chunks = 0;
  uint64_t places_offset = 0;
  uint32_t tracks = 0;
  uint32_t threads = 0;
  uint64_t slots = 0;               // In use are 0 ... slots - 1.
  uint64_t largest_stored = 0;      // Of a chunk, in the file ...
  uint64_t largest_raw = 0;         // ... and once decompressed.
  uint64_t calls[kCallKinds] = {};  // By kind; in the measured part ...
  uint64_t setup_calls = 0;         // ... and before it.
  uint64_t waits = 0;
  double ns_per_tick = 0;
  uint64_t ticks = 0;            // How long it took.
  uint64_t max_ideal_bytes = 0;  // The sum of what was asked for and not yet freed.
  uint64_t end_ideal_bytes = 0;
  uint64_t flags = 0;  // kAnonymized.
  // Of the calls that are not in it.
  uint64_t failed_calls = 0;   // They had failed.
  uint64_t unknown_frees = 0;  // Of blocks that were not allocated in the recording.
  uint64_t mapping_calls = 0;  // mmap and its like, by the program itself.
  uint64_t inversions = 0;     // Orders that cannot have been, put right.
  uint64_t missing_frees = 0;  // Not recorded, and replayed when their address was seen again.
  uint64_t lost_events = 0;    // The recording had lost them.
  uint64_t checksum = 0;       // XXH3 of the places, then of this with 0 here and below.
  char magic[8];
};
inline constexpr uint64_t kAnonymized = 1;

}  // namespace malloscope::replay
