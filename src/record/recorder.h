// SPDX-License-Identifier: Apache-2.0
// The hot path: from a call of malloc or free to an event in the lane.

#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "base/attributes.h"
#include "base/clock.h"
#include "record/detailed.h"
#include "record/process.h"
#include "record/thread_state.h"

extern "C" [[gnu::weak]] char __libc_single_threaded;

namespace malloscope::record {

using wire::Op;

// The frame of the hook itself: its return address and the caller's frame pointer lie there.
#define MSCOPE_FRAME reinterpret_cast<uintptr_t>(__builtin_frame_address(0))

uint64_t tick_in_order(ThreadState* t);
uint64_t tick_of_own_block(ThreadState* t);
MSCOPE_SLOW uint64_t tick_alone(ThreadState* t, uint32_t beat);

// The time of the event about to be written. A thread that is alone can be out of order with
// nobody, so there the clock is read only for every eighth event or when the collector's heart has
// beaten since the last (once a millisecond): reading it is most of what an event costs. The
// events between carry the time of the last one that was read.
MSCOPE_FAST bool is_alone() { return &__libc_single_threaded && __libc_single_threaded; }
MSCOPE_FAST uint64_t tick_if_alone(ThreadState* t) {
  if (times_calls()) return tick_of_own_block(t);  // Who asks for times wants them exact.
  uint32_t beat =
      static_cast<uint32_t>(inherited.shared.control().heartbeat.load(std::memory_order_relaxed));
  if (t->untimed < t->most_untimed && beat == t->last_beat) [[likely]] {
    ++t->untimed;
    return t->lane.last_tick();
  }
  return tick_alone(t, beat);
}
MSCOPE_FAST uint64_t tick_now(ThreadState* t) {
  return is_alone() ? tick_if_alone(t) : tick_in_order(t);
}
// With other threads about, every event has its own time; that of a block which comes from another
// lane is read in order with the loads that brought it here.
MSCOPE_FAST uint64_t tick_of(ThreadState* t, const void* block, LastTouch::How how) {
  if (is_alone()) [[likely]]
    return tick_if_alone(t);
  bool own =
      process().last_touch.same_lane(reinterpret_cast<uintptr_t>(block), t->lane.number(), how);
  return own ? tick_of_own_block(t) : tick_in_order(t);
}

// Signal handlers must see these stores in this order; the CPU needs no telling.
MSCOPE_FAST void ordered_for_signals() { std::atomic_signal_fence(std::memory_order_seq_cst); }

MSCOPE_FAST void begin_recording(ThreadState* t, uintptr_t frame) {
  t->recording = frame;
  ordered_for_signals();
}
MSCOPE_FAST void end_recording(ThreadState* t) {
  ordered_for_signals();
  t->recording = 0;
}

MSCOPE_FAST void enter(ThreadState* t, Op op, uintptr_t frame, size_t size = 0) {
  t->inner = 0;
  t->size = size;
  t->inner_hooks = 0;
  t->more_blocks = 0;
  t->block = nullptr;
  t->op = op;
  t->outer = frame;
  ordered_for_signals();
}
MSCOPE_SLOW void tell_cpu_of_hook(ThreadState* t, uintptr_t frame);  // See cpu_timer.h.
MSCOPE_FAST void leave(ThreadState* t) {
  if (kDetailed && t->cpu_due) [[unlikely]]
    tell_cpu_of_hook(t, t->outer);
  ordered_for_signals();
  t->outer = ThreadState::kIdle;
}

// The stack that ends in the hook with this frame. False: its definition did not fit.
bool stack_of(ThreadState* t, uintptr_t frame, StackId* id);

// The stack with this path hash, if it has been defined; an unwind::StackFinder for one thread.
StackId find_stack(void* thread_state, uint64_t hash);

// Writes one event; `frame` is that of the outermost hook.
void record_block(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size);
void record_aligned_block(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size,
                          uint8_t alignment_log2);
// In the name of the outer hook, and with the alignment it was asked for, if it is an aligned one.
MSCOPE_SLOW void record_block_of_outer(ThreadState* t, void* block, size_t size);
void record_free(ThreadState* t, Op op, void* block, uintptr_t frame);

// Calls of a hook that is not simply the outermost one. They decide which case
// of thread_state.h it is.
enum class Role { kForwardOnly, kInner, kOutermost };
struct Nested {
  ThreadState* state = nullptr;
  Role role = Role::kForwardOnly;
  // To be put back when an independent call ends.
  ThreadState* outer_state = nullptr;
  uintptr_t outer = 0, inner = 0;
  size_t size = 0;
  void* block = nullptr;
  Op op = Op::kMalloc;
  uint8_t inner_hooks = 0;
  uint8_t more_blocks = 0;
  uint8_t alignment_log2 = 0;
  void* more[ThreadState::kMoreBlocks] = {};
  bool ends_own = false;  // It frees or changes a block that an inner hook of the outer one made.
};
MSCOPE_SLOW Nested enter_nested(Op op, uintptr_t frame, void* freeing);
MSCOPE_SLOW void leave_nested(const Nested& nested);

// The real functions that call each other by name have frames no larger than this.
inline constexpr uintptr_t kInnerFrames = 1024;

// What most inner calls are: the first one of operator new or delete, to malloc or free.
MSCOPE_FAST bool is_plain_inner(const ThreadState* t, uintptr_t frame) {
  return t->outer - frame < kInnerFrames && !t->recording;
}

// What the outer hook does with a block. `op` of a realloc that was given one has this bit set.
enum class Does : uint8_t { kMake, kChange, kFree };
inline constexpr uint8_t kChanges = 0x40;
MSCOPE_FAST Does does(Op op) {
  auto number = static_cast<uint8_t>(op);
  return number & kChanges                           ? Does::kChange
         : number >= static_cast<uint8_t>(Op::kFree) ? Does::kFree
                                                     : Does::kMake;
}

// The blocks that inner hooks of the outer one have recorded: it may return one of them.
MSCOPE_SLOW bool is_among_more(const ThreadState* t, const void* block);
MSCOPE_SLOW void add_to_more(ThreadState* t, void* block);
MSCOPE_FAST bool has_recorded(const ThreadState* t, const void* block) {
  return t->block == block || (t->block && is_among_more(t, block));
}
MSCOPE_FAST void has_now_recorded(ThreadState* t, void* block) {
  if (t->block) [[unlikely]]
    add_to_more(t, t->block);
  t->block = block;
}

// What an entry point asks for besides a size. The aligned ones are told apart by type, so that
// the others do nothing for them. A plain malloc inside an aligned hook that is made of it tells
// no alignment: it was asked for none.
struct AnyAlignment {
  MSCOPE_FAST void keep(ThreadState*) const {}
  MSCOPE_FAST void record(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size) const {
    record_block(t, op, frame, block, size);
  }
  MSCOPE_FAST void record_inner(ThreadState* t, void* block, size_t size) const {
    record_block(t, t->op, t->outer, block, size);
  }
};
struct Alignment {
  uint8_t log2;
  MSCOPE_FAST explicit Alignment(size_t alignment) : log2(wire::alignment_log2(alignment)) {}
  // For inner hooks. Once this one is entered: whoever interrupts it later puts back what was here.
  MSCOPE_FAST void keep(ThreadState* t) const { t->alignment_log2 = log2; }
  MSCOPE_FAST void record(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size) const {
    record_aligned_block(t, op, frame, block, size, log2);
  }
  MSCOPE_FAST void record_inner(ThreadState* t, void* block, size_t size) const {
    record_block_of_outer(t, block, size);
  }
};

// An inner hook of another. A failure is the outer one's to tell: it may yet try again.
template <typename Call, typename Wish>
MSCOPE_FAST void* allocate_inner(ThreadState* t, uintptr_t frame, size_t size, Call&& call,
                                 Wish wish) {
  t->inner = 0;  // It may in turn call another of our hooks.
  ++t->inner_hooks;
  CallTimer timer;
  void* block = call();
  timer.stop(t);
  --t->inner_hooks;
  t->inner = frame;
  if (block && !has_recorded(t, block)) {
    wish.record_inner(t, block, size);
    has_now_recorded(t, block);
  }
  return block;
}

// Every allocating hook: `call` makes the real call and returns the block.
template <typename Call, typename Wish>
[[gnu::noinline, gnu::cold]] void* allocate_nested(Op op, uintptr_t frame, size_t size, Call&& call,
                                                   Wish wish) {
  Nested nested = enter_nested(op, frame, nullptr);
  ThreadState* t = nested.state;
  if (nested.role == Role::kForwardOnly) return call();
  if (nested.role == Role::kInner)
    return allocate_inner(t, frame, size, std::forward<Call>(call), wish);
  t->size = size;
  wish.keep(t);
  CallTimer timer;
  void* block = call();
  timer.stop(t);
  if (!block || !has_recorded(t, block)) wish.record(t, op, frame, block, size);
  leave_nested(nested);
  return block;
}

template <typename Call, typename Wish = AnyAlignment>
MSCOPE_FAST void* allocate(Op op, uintptr_t frame, size_t size, Call&& call, Wish wish = {}) {
  ThreadState* t = thread;
  if (t->outer != ThreadState::kIdle) [[unlikely]] {
    if (is_plain_inner(t, frame) && t->inner == 0 && does(t->op) == Does::kMake)
      return allocate_inner(t, frame, size, std::forward<Call>(call), wish);
    return allocate_nested(op, frame, size, std::forward<Call>(call), wish);
  }
  enter(t, op, frame, size);
  wish.keep(t);
  CallTimer timer;
  void* block = call();
  timer.stop(t);
  if (!block || !has_recorded(t, block)) [[likely]]
    wish.record(t, op, frame, block, size);
  leave(t);
  return block;
}

// The real call of a free, after its event. Its time can be told only if no other event
// has come between the two.
template <typename Call>
MSCOPE_FAST void call_after_event(ThreadState* t, uintptr_t frame, Call&& call) {
  uint64_t told = t->told;
  CallTimer timer;
  call();
  timer.stop(t);
  if constexpr (kDetailed) {
    if (t->told != told) return;
    begin_recording(t, frame);
    tell_call_time(t);
    end_recording(t);
  }
}

template <typename Call>
[[gnu::noinline, gnu::cold]] void release_nested(Op op, uintptr_t frame, void* block, Call&& call) {
  Nested nested = enter_nested(op, frame, block);
  if (nested.role == Role::kOutermost) {
    nested.state->block = block;
    record_free(nested.state, op, block, frame);
    call_after_event(nested.state, frame, std::forward<Call>(call));
    leave_nested(nested);
  } else {
    call();
  }
}

// Every freeing hook. The outermost one records, before the real call.
template <typename Call>
MSCOPE_FAST void release(Op op, uintptr_t frame, void* block, Call&& call) {
  ThreadState* t = thread;
  if (t->outer != ThreadState::kIdle) [[unlikely]] {
    if (is_plain_inner(t, frame) && t->block == block && does(t->op) == Does::kFree) return call();
    return release_nested(op, frame, block, std::forward<Call>(call));
  }
  enter(t, op, frame);
  t->block = block;
  record_free(t, op, block, frame);
  call_after_event(t, frame, std::forward<Call>(call));
  leave(t);
}

// realloc and reallocarray with a block to change.
struct Realloc {
  Nested nested;
  bool begun;
  StackId stack;
};
void begin_realloc(ThreadState* t, Op op, uintptr_t frame, void* old_block, Realloc* state);
void end_realloc(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size,
                 const Realloc& state);

template <typename Call>
void* reallocate(Op op, uintptr_t frame, void* old_block, size_t size, Call&& call) {
  if (!old_block) return allocate(op, frame, size, std::forward<Call>(call));
  Realloc state = {};
  ThreadState* t = thread;
  bool nested = t->outer != ThreadState::kIdle;
  if (nested) {
    state.nested = enter_nested(op, frame, old_block);
    t = state.nested.state;
    if (state.nested.role != Role::kOutermost) return call();
  } else {
    enter(t, op, frame);
  }
  t->block = old_block;
  t->op = static_cast<Op>(static_cast<uint8_t>(op) | kChanges);
  begin_realloc(t, op, frame, old_block, &state);
  CallTimer timer;
  void* block = call();
  timer.stop(t);
  end_realloc(t, op, frame, block, size, state);
  if (nested) {
    leave_nested(state.nested);
    if (state.nested.ends_own && block) has_now_recorded(state.nested.outer_state, block);
  } else {
    leave(t);
  }
  return block;
}

void record_thread_name(const char* name);
void record_not_followed(const char* program, uint64_t why);
void record_mark(wire::MarkKind kind, uintptr_t frame, const char* name);

// mmap and its like.
void record_mapping(Op op, uintptr_t frame, uint64_t address, uint64_t size, uint64_t other,
                    bool failed);

}  // namespace malloscope::record
