// SPDX-License-Identifier: Apache-2.0
// The memory that target and collector share, and the only thing that crosses
// the process border while a program runs.
//
//     Control | ImageSlot x 1024 | LaneSlot x 8192 | owners | Segment x n
//
// A *lane* is one thread's way out: a chain of 8 KiB segments taken from one
// pool, so that a thread that allocates once an hour holds one segment and a busy
// one may fill them all. The thread appends words and then stores their number in
// `committed`; the collector reads up to there, follows `next`, and gives a
// segment back once it is read.
//
// Any process may be killed between any two instructions, so everything is owned
// by one word that names the owner: an image slot (by its state), a lane (by the
// image that claimed it), a segment (by its lane). What a dead image owned is
// found by looking, never by trusting a list that was being changed.
//
// Each side takes the other's words as hostile: copy, check, then use. Nothing
// here holds a pointer.

#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace malloscope::wire {

inline constexpr uint64_t kLaneMagic = 0x31656e616c63736dULL;  // "msclane1"

inline constexpr uint32_t kImages = 1024;
inline constexpr uint32_t kLanes = 8192;
inline constexpr uint32_t kNoSegment = 0;  // Segments are numbered from 1.

struct Settings {
  uint32_t tick_shift = 8;      // A tick is 2^tick_shift clock cycles.
  uint32_t follow = 1;          // Re-add LD_PRELOAD at exec.
  uint32_t drop_when_full = 0;  // --on-full=drop
  uint32_t free_stacks = 0;     // --free-stacks
  uint32_t time_calls = 0;      // --time-calls
  uint32_t sample_log2 = 0;     // --sample; 0: every block (sampling.h).
  uint32_t cpu_period_us = 0;   // --cpu; 0: no samples of CPU time.
  uint64_t cycles_per_ms = 1'000'000;
  uint64_t pid_namespace = 0;  // In which the collector knows processes; 0: not known.
};

struct alignas(64) Control {
  uint64_t magic;
  uint32_t segment_count;
  uint32_t reserved;
  Settings settings;
  // Moved by the collector on every pass; a target whose lane is full waits while it moves.
  alignas(64) std::atomic<uint64_t> heartbeat;
  // Segments handed out so far and given back so far; the difference is the backlog.
  alignas(64) std::atomic<uint64_t> segments_taken;
  std::atomic<uint32_t> next_segment_hint;  // One less than where to look for a free one.
  alignas(64) std::atomic<uint64_t> segments_returned;
  std::atomic<uint64_t> passes;  // Of the collector over all lanes.
  // Processes that exec a program with the recorder, which will meet the collector; 0: no process.
  // The collector empties a place when it has met the process or knows that it is gone.
  static constexpr uint32_t kExecs = 64;
  std::atomic<int32_t> execs[kExecs];
};

enum class ImageState : uint32_t {
  kFree = 0,
  kClaimed,  // By a forked child that is filling it in, or by the collector for an exec'd image.
  kLive,
  kEnded,  // Its end was announced (exec); the collector alone frees the slot.
};

struct alignas(64) ImageSlot {
  std::atomic<uint32_t> state;
  int32_t pid;
  uint32_t parent_slot;         // For a forked child: the slot it was forked from, and ...
  uint32_t parent_stamp;        // ... that slot's stamp, since slots are used again.
  std::atomic<uint32_t> stamp;  // Counts the images that have used this slot.
  uint32_t exit_known;          // Set with exit_code by the exit hooks.
  int32_t exit_code;
  uint64_t peak_rss_bytes;       // Set by the exit hooks too; else 0.
  std::atomic<uint32_t> joined;  // An exec'd image has mapped this memory.
  uint64_t forked_tick;          // When fork was called, as far as is known.
  uint64_t start_tick;
  // Events that found no lane, no memory or no room; never forgotten, always reported.
  std::atomic<uint64_t> dropped;
  std::atomic<uint64_t> truncated_stacks;
  std::atomic<uint64_t> unwind_failures;
  std::atomic<uint64_t> private_bytes;       // What the recorder has mapped for itself.
  std::atomic<uint64_t> unclaimed_children;  // Forked children that found no image slot.
  std::atomic<uint64_t> sandboxed_children;  // Those forked where no system call may be made.
};

enum class LaneState : uint32_t {
  kIdle = 0,
  kLive,
  kEnded,  // The thread is gone; the collector drains and frees the lane.
};

struct alignas(64) LaneSlot {
  std::atomic<uint32_t> owner;  // 1 + image slot, or 0.
  std::atomic<uint32_t> state;
  int32_t tid;
  uint32_t nesting;             // > 0: used by signal handlers that interrupt the recorder.
  std::atomic<uint32_t> first;  // The first segment that the collector has not given back.
  uint32_t owner_stamp;
  std::atomic<uint64_t> dropped;
};

inline constexpr size_t kSegmentBytes = 8 << 10;
inline constexpr uint32_t kSegmentWords = kSegmentBytes / 8 - 8;

struct alignas(64) Segment {
  std::atomic<uint32_t> committed;  // Words that are complete.
  std::atomic<uint32_t> next;       // Set when this one is full and the next is in use.
  uint64_t unused[7];
  uint64_t words[kSegmentWords];
};
static_assert(sizeof(Segment) == kSegmentBytes);

// Where the parts are. Both sides compute it from the segment count alone.
class SharedMemory {
 public:
  SharedMemory() = default;
  explicit SharedMemory(void* base) : base_(static_cast<char*>(base)) {}

  static constexpr size_t owners_offset() {
    return sizeof(Control) + kImages * sizeof(ImageSlot) + kLanes * sizeof(LaneSlot);
  }
  static constexpr size_t segments_offset(uint32_t segments) {
    return (owners_offset() + (segments + 1) * sizeof(uint32_t) + 4095) & ~size_t{4095};
  }
  static constexpr size_t bytes_for(uint32_t segments) {
    return segments_offset(segments) + segments * kSegmentBytes;
  }

  explicit operator bool() const { return base_ != nullptr; }
  void* base() const { return base_; }
  Control& control() const { return *reinterpret_cast<Control*>(base_); }
  ImageSlot& image(uint32_t slot) const {
    return reinterpret_cast<ImageSlot*>(base_ + sizeof(Control))[slot];
  }
  LaneSlot& lane(uint32_t slot) const {
    return reinterpret_cast<LaneSlot*>(base_ + sizeof(Control) + kImages * sizeof(ImageSlot))[slot];
  }
  // 1 + the lane that holds segment `number`, or 0.
  std::atomic<uint32_t>& segment_owner(uint32_t number) const {
    return reinterpret_cast<std::atomic<uint32_t>*>(base_ + owners_offset())[number];
  }
  Segment& segment(uint32_t number, uint32_t segment_count) const {
    return reinterpret_cast<Segment*>(base_ + segments_offset(segment_count))[number - 1];
  }

 private:
  char* base_ = nullptr;
};

}  // namespace malloscope::wire
