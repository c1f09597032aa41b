// SPDX-License-Identifier: Apache-2.0
// A thread's state comes from the arena or from a thread that has ended. It goes
// back when the thread ends, which a pthread key's destructor tells. Other
// destructors allocate and free after ours, so ours asks to be called again until
// glibc's last round (the fourth). What is freed even later is written through a
// state that all departed threads share.
//
// A thread whose end nobody tells (made by a raw clone, or with all keys taken) is
// cleared up after by the collector, when it sees that the thread is gone.

#include "record/thread_state.h"

#include <pthread.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/syscall.h"
#include "record/cpu_timer.h"
#include "record/own_stack.h"
#include "record/process.h"
#include "record/recorder.h"

namespace malloscope::record {

// All zero: not idle, and never written to.
static constinit union Asleep {
  char zero[sizeof(ThreadState)];
  ThreadState state;
  constexpr Asleep() : zero() {}
} asleep;
constinit thread_local ThreadState* thread = &asleep.state;

namespace {

// Its last destructor round is over: no further state is kept for it.
constinit thread_local bool departed = false;

constinit pthread_key_t exit_key = 0;
constinit bool has_exit_key = false;

// Keys below this lie in the thread's own descriptor; a higher one would make
// pthread_setspecific allocate.
constexpr pthread_key_t kKeysWithoutHeap = 32;

constexpr int kDestructorRounds = 4;

constexpr int kPointerBits = 48;

// A stack of idle states. The count beside the pointer changes with every push and
// pop, so that a state which left and came back in between is noticed.
void push_idle(ThreadState* state) {
  std::atomic<uint64_t>& head = process().idle_threads;
  uint64_t top = head.load(std::memory_order_relaxed), mine;
  do {
    state->next_idle = top << (64 - kPointerBits) >> (64 - kPointerBits);
    mine = ((top >> kPointerBits) + 1) << kPointerBits | reinterpret_cast<uintptr_t>(state);
  } while (!head.compare_exchange_weak(top, mine, std::memory_order_release));
}

ThreadState* pop_idle() {
  std::atomic<uint64_t>& head = process().idle_threads;
  uint64_t top = head.load(std::memory_order_acquire), below;
  ThreadState* state;
  do {
    state = reinterpret_cast<ThreadState*>(top << (64 - kPointerBits) >> (64 - kPointerBits));
    if (!state) return nullptr;
    below = ((top >> kPointerBits) + 1) << kPointerBits | state->next_idle;
  } while (!head.compare_exchange_weak(top, below, std::memory_order_acquire));
  return state;
}

ThreadState* new_state(int tid, uint8_t nesting) {
  ThreadState* state = pop_idle();
  if (!state) {
    state = static_cast<ThreadState*>(process().arena.take(sizeof(ThreadState)));
    if (!state) return nullptr;
  }
  state->tid = tid;
  state->nesting = nesting;
  state->has_key = false;
  state->exit_rounds = 0;
  state->recording = state->inner = 0;
  state->nested = nullptr;
  state->cpu_due = state->cpu_of_recorder = state->cpu_changing = false;
  state->cpu_told_ns = 0;
  state->cpu_timer = nullptr;
  // What interleaves with another lane of the same thread, or serves many, is always timed.
  state->most_untimed = nesting == 0 && tid != 0 ? 7 : 0;
  state->untimed = state->most_untimed;
  if (!state->lane.open(tid, nesting)) {
    push_idle(state);
    return nullptr;
  }
  state->memo.begin(process().arena, own_stack(tid == image().pid), {find_stack, state});
  state->outer = ThreadState::kIdle;
  return state;
}

void tell_name(ThreadState* state) {
  char name[16] = {};
  if (sys::is_sandboxed()) return;
  if (!sys::failed(sys::call(SYS_prctl, PR_GET_NAME, sys::arg(name))))
    state->lane.thread_name(name);
}

void retire(ThreadState* state) {
  if (state->nested) retire(state->nested);
  state->outer = 0;
  state->lane.close();
  push_idle(state);
}

void thread_exits(void* argument) {
  auto* state = static_cast<ThreadState*>(argument);
  if (state != thread || state->outer == 0) return;  // Forked meanwhile, or already gone.
  if (++state->exit_rounds < kDestructorRounds) {
    pthread_setspecific(exit_key, state);
    return;
  }
  state->cpu_changing = true;
  ordered_for_signals();
  stop_cpu_timer(state);
  tell_last_cpu(state, MSCOPE_FRAME);
  tell_name(state);
  thread = &asleep.state;
  departed = true;
  retire(state);
}

// glibc frees a few things more after the last destructor of a thread. These events share one
// state, which a thread has only while it writes one; it belongs to no thread (tid 0). If another
// thread does not give it back at once, this event gets a state of its own.
ThreadState* borrow_late_state() {
  Process& p = process();
  uint32_t nobody = 0;
  for (int tries = 0; !p.late_taken.compare_exchange_weak(nobody, 1); nobody = 0) {
    if (++tries > 100) return new_state(0, 0);
    pause();
  }
  ThreadState* state = p.late.load(std::memory_order_relaxed);
  if (!state) {
    state = new_state(0, 0);
    p.late.store(state, std::memory_order_relaxed);
  }
  if (!state) {
    p.late_taken.store(0, std::memory_order_release);
    return nullptr;
  }
  state->memo.begin(p.arena, own_stack(false), {find_stack, state});
  return state;
}

}  // namespace

void arm_thread_exit() {
  if (has_exit_key) return;
  has_exit_key = pthread_key_create(&exit_key, thread_exits) == 0 && exit_key < kKeysWithoutHeap;
}

ThreadState* wake_thread() {
  if (!wake_process()) return nullptr;
  ThreadState* state = departed ? borrow_late_state() : new_state(sys::tid(), 0);
  if (!state) {
    image().dropped.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
  thread = state;
  if (departed) return state;
  tell_name(state);
  if (has_exit_key) state->has_key = pthread_setspecific(exit_key, state) == 0;
  if (samples_cpu() && !state->cpu_changing) {
    state->cpu_changing = true;
    ordered_for_signals();
    begin_cpu(state, MSCOPE_FRAME);
    ordered_for_signals();
    state->cpu_changing = false;
  }
  return state;
}

static void give_back(ThreadState* late) {
  if (late == process().late.load(std::memory_order_relaxed))
    process().late_taken.store(0, std::memory_order_release);
  else
    retire(late);
}

void give_back_late_state(ThreadState* state) {
  thread = &asleep.state;
  give_back(state);
}

void with_late_state(void (*tell)(ThreadState*)) {
  ThreadState* late = borrow_late_state();
  if (!late) return;
  tell(late);
  give_back(late);
}

ThreadState* nested_state(ThreadState* busy) {
  constexpr uint8_t kDeepest = 8;
  if (busy->nested) return busy->nested;
  if (busy->nesting < kDeepest)
    busy->nested = new_state(busy->tid, static_cast<uint8_t>(busy->nesting + 1));
  return busy->nested;
}

}  // namespace malloscope::record
