// SPDX-License-Identifier: Apache-2.0
// Writing an event has three steps that may not fit in the lane: a module that
// was not named yet, the stack if it is new, the event. If one of them fails the
// event is dropped and counted; a stack whose definition was not written is not
// published, so no event can refer to it.

#include "record/recorder.h"

#include <signal.h>

#include "base/syscall.h"
#include "record/sampler.h"
#include "record/self_check.h"
#include "unwind/modules.h"

namespace malloscope::record {

uint64_t tick_in_order(ThreadState* t) {
  if (inherited.clock_forbidden.load(std::memory_order_relaxed)) [[unlikely]]
    return t->lane.last_tick() + 1;
  return cycles_ordered() >> inherited.tick_shift;
}

uint64_t tick_of_own_block(ThreadState* t) {
  uint64_t last = t->lane.last_tick();
  if (inherited.clock_forbidden.load(std::memory_order_relaxed)) [[unlikely]]
    return last + 1;
  uint64_t tick = cycles() >> inherited.tick_shift;
  return tick < last ? last : tick;
}

uint64_t tick_alone(ThreadState* t, uint32_t beat) {
  if (inherited.clock_forbidden.load(std::memory_order_relaxed)) [[unlikely]]
    return t->lane.last_tick() + 1;
  t->untimed = 0;
  t->last_beat = beat;
  return cycles() >> inherited.tick_shift;
}

static constexpr uint32_t kBusyAfterLookups = 10'000;
static constexpr size_t kRecentStacks = 8192;

// A definition this long still fits in a segment; longer stacks are defined in pieces.
static constexpr uint32_t kLongestDefinition = 1000;

MSCOPE_SLOW static bool tell_modules(ThreadState* t) {
  std::atomic<uint32_t>& told = process().modules_told;
  uint32_t next = told.load(std::memory_order_relaxed);
  while (next < unwind::module_count()) {
    if (!told.compare_exchange_weak(next, next + 1)) continue;
    const unwind::Module& m = *unwind::module_at(next);
    if (!t->lane.module(m.start, m.end, m.bias, m.generation, {m.build_id, m.build_id_size},
                        {m.name, m.name_size})) {
      // Somebody else may have been quicker with the one after it, in which case
      // this one stays untold: its frames will be shown as addresses.
      uint32_t after = next + 1;
      told.compare_exchange_strong(after, next);
      return false;
    }
    ++next;
  }
  return true;
}

MSCOPE_SLOW static bool define_stack(ThreadState* t, const unwind::Captured& stack, StackId* id) {
  if (!tell_modules(t)) return false;
  uint64_t flags = (stack.cut ? wire::kStackCut : 0) | (stack.stopped ? wire::kStackStopped : 0);
  StackId owner = stack.owner;
  uint32_t kept = stack.kept;
  auto fresh = stack.fresh;
  do {
    auto piece = fresh.first(fresh.size() < kLongestDefinition ? fresh.size() : kLongestDefinition);
    // First the room, then the id: ids that come to nothing would make the stack table sparse.
    if (!t->lane.reserve(LaneWriter::stack_words(piece))) return false;
    *id = process().stacks.new_id();
    if (*id == StackId::kNone) return false;
    t->lane.stack(*id, owner, kept, stack.generation, flags, piece);
    owner = *id;
    kept += static_cast<uint32_t>(piece.size());
    fresh = fresh.subspan(piece.size());
  } while (!fresh.empty());
  process().stacks.publish(stack.hash, *id, &process().arena);
  image().private_bytes.store(process().arena.mapped(), std::memory_order_relaxed);
  return true;
}

// The thread's own place for a path: the table of all stacks is large, and mostly not in the cache.
// There is none until the thread has shown that it is busy.
MSCOPE_FAST static RecentStack* recent_stack(ThreadState* t, uint64_t hash) {
  if (!t->recent) [[unlikely]] {
    if (++t->lookups < kBusyAfterLookups) return nullptr;
    t->recent = process().arena.take_array<RecentStack>(kRecentStacks);
    if (!t->recent) return nullptr;
  }
  return &t->recent[hash % kRecentStacks];
}

StackId find_stack(void* thread_state, uint64_t hash) {
  auto* t = static_cast<ThreadState*>(thread_state);
  RecentStack* recent = recent_stack(t, hash);
  if (recent && recent->hash == hash) return recent->id;
  StackId id = process().stacks.find(hash, t->last_found);
  if (id == StackId::kNone) return id;
  t->last_found = id;
  if (recent) *recent = {hash, id};
  return id;
}

bool stack_of(ThreadState* t, uintptr_t frame, StackId* id) {
  unwind::Start start = {frame + sizeof(uintptr_t), *reinterpret_cast<const uintptr_t*>(frame)};
  *id = t->memo.recall(start);
  if (*id != StackId::kNone) [[likely]] {
    if constexpr (kSelfCheck) self_check(frame, t->memo.recalled_hash(), false);
    return true;
  }
  unwind::Captured stack = t->memo.walk(start);
  if (kSelfCheck && !stack.cut) self_check(frame, stack.hash, stack.stopped);
  if (stack.cut) [[unlikely]]
    image().truncated_stacks.fetch_add(1, std::memory_order_relaxed);
  if (stack.stopped) [[unlikely]]
    image().unwind_failures.fetch_add(1, std::memory_order_relaxed);
  if (stack.id != StackId::kNone) {
    *id = stack.id;
    return true;
  }
  *id = find_stack(t, stack.hash);
  if (*id == StackId::kNone && !define_stack(t, stack, id)) return false;
  t->memo.name(*id);
  return true;
}

uint64_t cost_of_timing() {
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 64; ++i) {
    uint64_t began = cycles_before_loads(), passed = cycles_ordered() - began;
    if (passed < least) least = passed;
  }
  return least;
}

// The event of a call is in the lane, and the time that it took is known.
MSCOPE_FAST static void told_with_time(ThreadState* t) {
  if constexpr (kDetailed) {
    ++t->told;
    tell_call_time(t);
  }
}

void record_block(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size) {
  if (passes_over(t, frame, block, size)) return;
  begin_recording(t, frame);
  uint64_t tick = tick_of(t, block, LastTouch::kMade);
  StackId stack;
  if (!stack_of(t, frame, &stack) ||
      !t->lane.block(wire::kTagAlloc, op, tick, reinterpret_cast<uintptr_t>(block), size, stack))
    t->lane.count_drop();
  else
    told_with_time(t);
  end_recording(t);
}

void record_aligned_block(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size,
                          uint8_t alignment_log2) {
  if (passes_over(t, frame, block, size)) return;
  begin_recording(t, frame);
  uint64_t tick = tick_of(t, block, LastTouch::kMade);
  StackId stack;
  if (!stack_of(t, frame, &stack) ||
      !t->lane.aligned_block(alignment_log2, op, tick, reinterpret_cast<uintptr_t>(block), size,
                             stack))
    t->lane.count_drop();
  else
    told_with_time(t);
  end_recording(t);
}

// libstdc++ rounds up what an aligned operator new asks aligned_alloc for; the program asked for
// less. (Of nothing it makes 1 byte, which is what a plain new of nothing is recorded as, too.)
static size_t asked_for(const ThreadState* t, size_t size) {
  size_t asked = t->size ? t->size : 1;
  size_t most = (size_t{1} << t->alignment_log2) - 1;
  return size == ((asked + most) & ~most) ? asked : size;
}

void record_block_of_outer(ThreadState* t, void* block, size_t size) {
  if (wire::is_aligned(t->op))
    record_aligned_block(t, t->op, t->outer, block, asked_for(t, size), t->alignment_log2);
  else
    record_block(t, t->op, t->outer, block, size);
}

void record_free(ThreadState* t, Op op, void* block, uintptr_t frame) {
  if (samples() && block && !process().sampled.take_out(block)) return;
  begin_recording(t, frame);
  if constexpr (kDetailed) {
    StackId stack;
    if (inherited.free_stacks && block && stack_of(t, frame, &stack)) t->lane.free_stack(stack);
    ++t->told;
  }
  uint64_t tag = wire::kTagFirstFree + static_cast<uint64_t>(op) - static_cast<uint64_t>(Op::kFree);
  if (!t->lane.release(tag, op, tick_of(t, block, LastTouch::kFreed),
                       reinterpret_cast<uintptr_t>(block)))
    t->lane.count_drop();
  end_recording(t);
}

// In a sample a realloc is a free and an allocation, each told if its block is in the sample. The
// free is told as a realloc that makes nothing: it may fail, and then the old block lives on.
MSCOPE_SLOW static void begin_sampled_realloc(ThreadState* t, Op op, uintptr_t frame,
                                              void* old_block, Realloc* state) {
  if (!process().sampled.take_out(old_block)) return;
  begin_recording(t, frame);
  constexpr uint32_t kBothHalves = 5 + 1 + 5;
  state->begun =
      t->lane.reserve(kBothHalves) &&
      t->lane.release(wire::kTagReallocBegin, op, tick_of(t, old_block, LastTouch::kFreed),
                      reinterpret_cast<uintptr_t>(old_block));
  if (!state->begun) t->lane.count_drop();
  end_recording(t);
}

MSCOPE_SLOW static void end_sampled_realloc(ThreadState* t, Op op, uintptr_t frame, void* block,
                                            size_t size, const Realloc& state) {
  bool failed = !block && size != 0;
  // What is or was reallocated is never temporary.
  if (block && !t->passed) tell_passed(t, frame);
  if (state.begun) {
    begin_recording(t, frame);
    if (failed) process().sampled.add(t->block);
    t->lane.block(wire::kTagReallocEnd, op, tick_of(t, nullptr, LastTouch::kMade), 0,
                  failed ? size : 0, StackId::kNone);
    end_recording(t);
  }
  if (block || (failed && !state.begun)) record_block(t, op, frame, block, size);
  if (block && !t->passed) tell_passed(t, frame);
}

void begin_realloc(ThreadState* t, Op op, uintptr_t frame, void* old_block, Realloc* state) {
  if (samples()) return begin_sampled_realloc(t, op, frame, old_block, state);
  begin_recording(t, frame);
  // Everything that can fail comes first, the second half's room too: a realloc is
  // recorded whole or not at all.
  constexpr uint32_t kBothHalves = 5 + 5;
  state->begun =
      stack_of(t, frame, &state->stack) && t->lane.reserve(kBothHalves) &&
      t->lane.release(wire::kTagReallocBegin, op, tick_of(t, old_block, LastTouch::kFreed),
                      reinterpret_cast<uintptr_t>(old_block));
  if (!state->begun) t->lane.count_drop();
  end_recording(t);
}

void end_realloc(ThreadState* t, Op op, uintptr_t frame, void* block, size_t size,
                 const Realloc& state) {
  if (samples()) return end_sampled_realloc(t, op, frame, block, size, state);
  if (!state.begun) return;
  begin_recording(t, frame);
  t->lane.block(wire::kTagReallocEnd, op, tick_of(t, block, LastTouch::kMade),
                reinterpret_cast<uintptr_t>(block), size, state.stack);
  told_with_time(t);
  end_recording(t);
}

// Whether a signal handler runs on a stack of its own, which may lie anywhere.
static bool on_alternate_stack() {
  if (sys::is_sandboxed()) return true;  // Cannot ask.
  stack_t stack = {};
  sys::call(SYS_sigaltstack, 0, sys::arg(&stack));
  return stack.ss_flags & SS_ONSTACK;
}

bool is_among_more(const ThreadState* t, const void* block) {
  for (uint8_t i = 0; i < t->more_blocks; ++i)
    if (t->more[i] == block) return true;
  return false;
}

void add_to_more(ThreadState* t, void* block) {
  if (t->more_blocks < ThreadState::kMoreBlocks) t->more[t->more_blocks++] = block;
}

// Takes a block out of those that inner hooks have recorded; whether it was one.
static bool forget_recorded(Nested* nested, const void* block) {
  if (!block) return false;
  uint8_t& more = nested->more_blocks;
  if (nested->block == block) {
    nested->block = more > 0 ? nested->more[--more] : nullptr;
    return true;
  }
  for (uint8_t i = 0; i < more; ++i) {
    if (nested->more[i] != block) continue;
    nested->more[i] = nested->more[--more];
    return true;
  }
  return false;
}

Nested enter_nested(Op op, uintptr_t frame, void* freeing) {
  ThreadState* t = thread;
  if (t->outer == 0) {
    t = wake_thread();
    if (!t) return {};
    enter(t, op, frame);
    Nested woken;
    woken.state = woken.outer_state = t;
    woken.role = Role::kOutermost;
    woken.outer = ThreadState::kIdle;
    return woken;
  }
  Nested nested = {.state = t,
                   .role = Role::kOutermost,
                   .outer_state = t,
                   .outer = t->outer,
                   .inner = t->inner,
                   .size = t->size,
                   .block = t->block,
                   .op = t->op,
                   .inner_hooks = t->inner_hooks,
                   .more_blocks = t->more_blocks,
                   .alignment_log2 = t->alignment_log2};
  for (uint8_t i = 0; i < t->more_blocks; ++i) nested.more[i] = t->more[i];
  if (t->recording) {
    if (frame > t->recording && !on_alternate_stack()) {
      // The hook that was recording has been left by a longjmp.
      t->memo.clear();
      t->recording = 0;
      nested.outer = ThreadState::kIdle;
    } else {
      t = nested_state(t);
      if (!t) {
        thread->lane.count_drop();
        return {};
      }
      nested.state = thread = t;
      if (t->outer != ThreadState::kIdle) t->outer = ThreadState::kIdle;
      nested.outer = ThreadState::kIdle;
      enter(t, op, frame);
      return nested;
    }
  } else if (t->outer == ThreadState::kIdle) {
    nested.outer = ThreadState::kIdle;
  } else if (frame >= t->outer) {
    nested.outer = ThreadState::kIdle;  // An exception or longjmp has left the outer hook.
  } else if (t->outer - frame < kInnerFrames) {
    switch (does(t->op)) {
      case Does::kMake:
        if (freeing || does(op) == Does::kFree) {
          nested.ends_own = forget_recorded(&nested, freeing);
        } else if (t->inner == 0 || t->inner == frame) {
          nested.role = Role::kInner;
          return nested;
        }
        break;
      case Does::kFree:
        if (!freeing || t->block != freeing) break;
        nested.role = Role::kInner;
        return nested;
      case Does::kChange:
        return {};
    }
  }
  enter(t, op, frame);
  return nested;
}

void leave_nested(const Nested& nested) {
  ThreadState* t = nested.state;
  if (kDetailed && t->cpu_due && t->nesting == 0) [[unlikely]]
    tell_cpu_of_hook(t, t->outer);
  ordered_for_signals();
  if (nested.outer_state != t) {
    t->outer = ThreadState::kIdle;
    thread = nested.outer_state;
    // What comes after this in the other lane must be timed to come after it.
    thread->untimed = thread->most_untimed;
    return;
  }
  t->inner = nested.inner;
  t->size = nested.size;
  t->block = nested.block;
  t->op = nested.op;
  t->inner_hooks = nested.inner_hooks;
  t->more_blocks = nested.more_blocks;
  t->alignment_log2 = nested.alignment_log2;
  for (uint8_t i = 0; i < nested.more_blocks; ++i) t->more[i] = nested.more[i];
  t->outer = nested.outer;
  if (t->tid == 0) [[unlikely]]
    give_back_late_state(t);
}

void record_thread_name(const char* name) {
  ThreadState* t = thread;
  if (t->outer != ThreadState::kIdle) return;
  char padded[16] = {};
  for (int i = 0; i < 15 && name[i]; ++i) padded[i] = name[i];
  begin_recording(t, MSCOPE_FRAME);
  t->lane.thread_name(padded);
  end_recording(t);
}

void record_not_followed(const char* program, uint64_t why) {
  ThreadState* t = thread;
  if (t->outer == 0) t = wake_thread();
  if (!t || t->outer != ThreadState::kIdle || !program) return;
  begin_recording(t, MSCOPE_FRAME);
  t->lane.not_followed(program, why);
  end_recording(t);
}

void record_mark(wire::MarkKind kind, uintptr_t frame, const char* name) {
  size_t bytes = 0;
  while (bytes < wire::kMostMarkBytes && name[bytes]) ++bytes;
  // Not within a character of UTF-8.
  if (bytes == wire::kMostMarkBytes)
    while (bytes > 0 && (static_cast<uint8_t>(name[bytes]) & 0xc0) == 0x80) --bytes;
  Nested nested = enter_nested(Op::kMmap, frame, nullptr);
  ThreadState* t = nested.state;
  if (nested.role == Role::kForwardOnly) return;
  begin_recording(t, frame);
  // What this thread and those before it have done is before the mark.
  if (!t->lane.mark(kind, tick_in_order(t), {name, bytes})) t->lane.count_drop();
  end_recording(t);
  leave_nested(nested);
}

void record_mapping(Op op, uintptr_t frame, uint64_t address, uint64_t size, uint64_t other,
                    bool failed) {
  ThreadState* t = thread;
  bool inside_allocator = t->outer > ThreadState::kIdle && frame < t->outer && !t->recording;
  Nested nested;
  nested.state = t;
  nested.role = Role::kInner;
  if (!inside_allocator) nested = enter_nested(op, frame, nullptr);
  if (nested.role == Role::kForwardOnly) return;
  t = nested.state;
  uint8_t flags = (inside_allocator ? wire::kInsideAllocator : 0) | (failed ? wire::kFailed : 0);
  begin_recording(t, frame);
  StackId stack;
  if (!stack_of(t, frame, &stack) ||
      !t->lane.mapping(op, flags, tick_now(t), address, size, stack, other))
    t->lane.count_drop();
  end_recording(t);
  if (!inside_allocator) leave_nested(nested);
}

}  // namespace malloscope::record
