// SPDX-License-Identifier: Apache-2.0
// What the recorder knows of the process it is in. Two structs, because of fork:
// `process()` is wiped in a forked child, `inherited` is not.

#pragma once

#include <atomic>
#include <cstdint>

#include "base/arena.h"
#include "base/ids.h"
#include "record/last_touch.h"
#include "record/sampled_blocks.h"
#include "record/stack_table.h"
#include "record/thread_starts.h"
#include "wire/lane.h"

namespace malloscope::record {

struct ThreadState;

enum class Phase : uint32_t {
  kAsleep = 0,  // Also what a forked child finds: its memory was wiped.
  kWaking,
  kRecording,
  kInert,  // There is nobody to record for. Every hook only forwards.
};

struct Process {
  std::atomic<Phase> phase;
  int pid;  // As it sees itself. A vfork child, which shares all this, sees another.
  std::atomic<bool> childs_sandbox;  // A vfork child's, for as long as it lives (sandbox.h).
  Arena arena;
  StackTable stacks;
  std::atomic<uint32_t> modules_told;  // How many of unwind's modules have been written to a lane.
  std::atomic<uint64_t>
      idle_threads;                // Thread states of threads that ended: count << 48 | pointer.
  std::atomic<ThreadState*> late;  // What departed threads write through, one at a time.
  std::atomic<uint32_t> late_taken;
  std::atomic<uint64_t> stalled_at;  // 1 + the heartbeat at which the collector was found dead.
  std::atomic<uint64_t> starved_at;  // 1 + segments_returned when idle threads held them all.
  LastTouch last_touch;
  SampledBlocks sampled;
  // 1 + the kernel's number of the timer of each thread that has one; see cpu_timer.h.
  static constexpr int kCpuTimers = 1024;
  static constexpr int32_t kTaken = -1;
  std::atomic<int32_t> cpu_timers[kCpuTimers];
  std::atomic<uint64_t> cpu_told_ns;  // By all threads.
  uint64_t cpu_before_ns;  // Used by threads of a program that has become this one by exec.
  ThreadStarts thread_starts;
};

// Survives a fork; the child finds its parent's values here.
struct Inherited {
  Process* process;
  wire::SharedMemory shared;
  uint32_t segment_count;
  uint32_t tick_shift;
  uint64_t cycles_per_ms;
  uint32_t image_slot;
  uint32_t image_stamp;
  uint64_t fork_tick;  // When fork was last called, if it was called by that name.
  std::atomic<uint32_t> clock_forbidden;  // Reading the clock would kill the process (seccomp).
  bool follow;
  bool drop_when_full;
  bool free_stacks, time_calls;  // See detailed.h.
  uint32_t sample_log2;          // See sampler.h.
  uint32_t cpu_period_us;        // See cpu_timer.h; 0: nobody wants to know.
  bool catches_cpu_signal;
  uint64_t timing_cost;
  bool inert;              // Nobody to record for, in this process and all its children.
  char preload_path[128];  // By which children find the collector.
};
extern constinit Inherited inherited;

inline Process& process() { return *inherited.process; }
inline wire::ImageSlot& image() { return inherited.shared.image(inherited.image_slot); }

// What LD_PRELOAD must name for a child to be recorded, and whether it is there to be found
// (it is not after a chroot).
inline const char* preload_path() { return inherited.preload_path; }
bool recorder_is_reachable();

// Puts the recorder into the program's own LD_PRELOAD, if it has one, or takes it out: libc starts
// some programs by itself with that environment (system, popen).
void lead_children(bool to_collector);

// Makes sure that the process is recording or inert: meets the collector, or
// enters a forked child into the shared memory. True if recording.
bool wake_process();

}  // namespace malloscope::record
