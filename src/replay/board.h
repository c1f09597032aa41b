// SPDX-License-Identifier: Apache-2.0
// Memory that the player shares with the tool that started it: what it is to do, how far it is and
// what it found. The tool watches from outside, so the player reads no /proc and writes no files.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "replay/workload.h"

namespace malloscope::replay {

enum class Touch : uint32_t { kNone, kFirst, kAll };

// States, in this order; the tool sets kGo and kMayExit, the player the others.
enum class State : uint32_t { kStarting, kReady, kGo, kDone, kMayExit };

enum class Fault : uint32_t {
  kNothing,
  kCannotRead,  // The workload; `a` is errno.
  kBadWorkload,
  kNoMemory,      // For the player itself.
  kNoThread,      // `a` is what pthread_create returned.
  kNotAllocator,  // malloc and free are not the preloaded library's.
  kNoAligned,     // It has none of memalign, aligned_alloc and posix_memalign.
  // With --verify, of a block of `a` bytes:
  kMisaligned,   // `b` is the alignment.
  kOverwritten,  // The byte at `b` was not what was written there.
  kNotZero,      // calloc's; the byte at `b`.
  kNotCopied,    // realloc's; the byte at `b`.
};

// In place of the operation that found a fault.
inline constexpr uint64_t kAtTheEnd = UINT64_MAX;

// Logarithms of cycles in eighths: 8 of a power of two.
inline constexpr int kCycleBuckets = 320;
inline constexpr int kSizeClasses = 65;  // As analyze/tally.h has them: 0, then powers of two.
// Calls for so many bytes are rare and dear: they are all timed, of the others one in kSampling, or
// more where there are few.
inline constexpr uint64_t kLargeSize = 128 << 10;
inline constexpr uint32_t kSampling = 64;

// Of calls whose time was taken. Each counts for as many as it stands for.
struct Timed {
  uint64_t weight = 0;
  int64_t cycles = 0;
};

struct Work {
  uint64_t ops = 0;
  uint64_t cpu_ns = 0;
};

// What one track found, in the measured part.
struct TrackCounts {
  uint64_t calls[kCallKinds] = {};
  uint64_t ops = 0;
  uint64_t failed = 0;       // Returned nothing, though the recorded one had returned a block.
  uint64_t interrupted = 0;  // Timings that were not used: the thread had been interrupted.
  uint64_t slow_waits = 0;   // What was waited for had not yet been there.
  uint64_t cpu_ns = 0;
  uint64_t wait_cpu_ns = 0;
  // The player's own, from its first operation on. Those that are no calls count too.
  Work decoding, rehearsing;
  Timed touches;
  Timed groups[kCallGroups];
  // By the bytes asked for; of free, by those of the block.
  Timed sizes[kCallGroups][kSizeClasses];
  uint64_t histogram[kCallGroups][kCycleBuckets] = {};
};

struct TrackBoard {
  // How many of its operations are done; and, if somebody sleeps until there are more, when to
  // wake him.
  alignas(64) std::atomic<uint64_t> done = 0;
  std::atomic<uint64_t> wanted = UINT64_MAX;
  std::atomic<uint32_t> wakes = 0;
  alignas(64) TrackCounts counts;
};

struct alignas(64) Board {
  std::atomic<State> state = State::kStarting;
  std::atomic<Fault> fault = Fault::kNothing;
  uint64_t fault_a = 0, fault_b = 0;
  uint32_t fault_track = 0;
  uint64_t fault_op = 0;
  // Kept by whoever sees a fault first; it is whole when `fault` is set.
  std::atomic<uint32_t> fault_taken = 0;

  // What to do.
  Touch touch = Touch::kFirst;
  uint32_t verify = 0;
  double speed = 0;         // 0: as fast as it goes. 1: as recorded.
  uint64_t trim_ticks = 0;  // 0: never.
  uint32_t sampling = kSampling;
  uint32_t preloaded = 0;  // Whether there must be another allocator than libc's.
  int32_t launcher = 0;    // Whose end is the player's too.

  // What it found.
  char library[256] = {};              // Where its malloc is from.
  std::atomic<int64_t> ideal = 0;      // Bytes asked for and not yet freed ...
  std::atomic<int64_t> max_ideal = 0;  // ... and the most there were.
  uint64_t setup_ns = 0;               // In which the heap was built up; then ...
  uint64_t wall_ns = 0;                // ... what counts.
  double cycles_per_ns = 0;
  uint64_t timing_cycles = 0;  // What it costs to take a time; taken off.
  std::atomic<uint64_t> trims = 0;
  uint32_t can_trim = 0;
  uint64_t own_bytes = 0;  // Of the player itself, at the beginning.
  uint32_t tracks = 0;

  // Behind the board, as many as there are.
  TrackBoard& track(uint32_t number) { return reinterpret_cast<TrackBoard*>(this + 1)[number]; }
  const TrackBoard& track(uint32_t number) const {
    return reinterpret_cast<const TrackBoard*>(this + 1)[number];
  }
  static size_t bytes(uint32_t tracks) { return sizeof(Board) + tracks * sizeof(TrackBoard); }
};

// Bucket b holds cycles from bucket_floor(b) on.
constexpr int cycle_bucket(uint64_t cycles) {
  if (cycles < 8) return static_cast<int>(cycles);
  int power = 63 - __builtin_clzll(cycles);
  int bucket = (power - 2) * 8 + static_cast<int>(cycles >> (power - 3) & 7);
  return bucket < kCycleBuckets ? bucket : kCycleBuckets - 1;
}
constexpr uint64_t bucket_floor(int bucket) {
  if (bucket < 16) return static_cast<uint64_t>(bucket);
  return (8 + static_cast<uint64_t>(bucket % 8)) << (bucket / 8 - 1);
}

}  // namespace malloscope::replay
