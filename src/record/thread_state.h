// SPDX-License-Identifier: Apache-2.0
// What the recorder keeps for each thread, and how a hook finds out in one
// comparison whether it may go ahead.
//
// `outer` is that comparison. It is
//     0         in memory that was wiped by a fork, and in the state that every
//               thread starts with: wake up first;
//     kIdle     the thread is outside all hooks: go ahead;
//     a frame   the outermost hook of the thread that has not returned yet.
//
// A hook entered while another is active is one of:
//     the allocator calling itself by its public name: operator new -> malloc, where the
//       inner call returns the block and records it, under the outer call's name; operator
//       delete -> free of the same block, and whatever a realloc calls, of which nothing is told;
//     an operator new or delete that allocates and frees for its own purposes: calls of their own;
//     a signal handler, or a new_handler: a call of its own;
//     a call after an exception or longjmp has left the outer hook without a word:
//       the outer frame lies deeper in the stack than the present one, so it is gone;
//     a signal handler that has interrupted the recorder itself (`recording`): the
//       memo and the lane are in use, so it gets a second state with its own lane.

#pragma once

#include <atomic>
#include <cstdint>

#include "record/lane_writer.h"
#include "unwind/stack_memo.h"
#include "wire/event.h"

namespace malloscope::record {

struct RecentStack {
  uint64_t hash;
  StackId id;
};

struct ThreadState {
  static constexpr uintptr_t kIdle = 1;

  uintptr_t outer;
  uintptr_t recording;  // The frame of the hook whose event is being written, or 0.
  uintptr_t inner;      // The frame of the hook last called by the outer one; a call of the same
                        // frame is another try, one from elsewhere is not the allocator's.
  void* block;          // What an inner hook recorded last, or what the outer one is freeing.
  size_t size;          // What the outer hook was asked for.
  wire::Op op;          // The entry point of the outer hook.
  bool has_key;         // Thread exit will tell us.
  uint8_t exit_rounds;
  uint8_t nesting;
  uint8_t inner_hooks;     // That have not returned yet.
  uint8_t more_blocks;     // That inner hooks have recorded before `block`.
  uint8_t alignment_log2;  // What the outer hook was asked for, if it is an aligned one.
  int tid;
  ThreadState* nested;  // For signal handlers that interrupt this one.
  uint64_t next_idle;   // In the list of states without a thread.
  uint32_t untimed;     // Events since the clock was last read; see tick_now().
  uint32_t most_untimed;
  uint32_t last_beat;
  RecentStack* recent;  // See find_stack() in recorder.cc.
  StackId last_found;
  uint32_t lookups;
  static constexpr uint8_t kMoreBlocks = 4;
  void* more[kMoreBlocks];
  uint64_t call_cycles;  // See detailed.h: how long the real call took, ...
  uint64_t told;         // ... and how many events the lane has.
  uint64_t random;       // See throws.h: where its throws are, ...
  bool passed;           // ... and whether it has passed over a block since it last took one.
  bool cpu_due;          // See cpu_timer.h: a signal came while a hook was at work, ...
  bool cpu_of_recorder;  // ... and not in the allocator.
  bool cpu_changing;     // Its timer is being made or removed.
  uint64_t cpu_told_ns;  // Of the thread's CPU time.
  std::atomic<int32_t>* cpu_timer;  // Its place in Process::cpu_timers, if it has a timer.
  LaneWriter lane;
  unwind::StackMemo memo;
};

// The calling thread's. Points to a state that is never idle until the thread has its own.
extern constinit thread_local ThreadState* thread;

// Gives the thread a state and a lane. nullptr if this process is not recording.
MSCOPE_SLOW ThreadState* wake_thread();

// Calls `tell` with the state of threads that are gone, whose events nobody else would tell.
void with_late_state(void (*tell)(ThreadState*));

// To be called when a hook ends whose thread was woken for it alone; see thread_state.cc.
void give_back_late_state(ThreadState* state);

// The state to use while `busy` is being written to.
MSCOPE_SLOW ThreadState* nested_state(ThreadState* busy);

// Called once, when the process starts to record.
void arm_thread_exit();

}  // namespace malloscope::record
