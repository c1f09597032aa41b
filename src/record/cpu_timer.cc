// SPDX-License-Identifier: Apache-2.0
// The handler runs between any two instructions of the program, of libc or of our own hooks. It
// makes two system calls (its thread's CPU clock, and the return), takes no lock, and touches the
// thread's state only if no hook is at work; else it leaves word, and the hook tells.
//
// The interrupted function is found as any hook finds its callers: the handler's caller is the
// kernel's frame for the signal, and the unwinder goes through that (unwind/walk.h).

#include "record/cpu_timer.h"

#include <time.h>
#include <ucontext.h>

#include "base/syscall.h"
#include "record/real.h"
#include "record/recorder.h"

namespace malloscope::record {
namespace {

// What the kernel calls these; the headers of libc have other types for them.
struct KernelSigset {
  uint64_t bits = 0;
};

// By this the handler knows signals of our timers from all others.
constinit char our_mark = 0;

// What the program wants to be done at the signal. Read by the handler while it may be changed:
// `turns` is odd meanwhile, and another one afterwards.
constinit struct sigaction programs_action = {};
constinit std::atomic<uint32_t> turns = 0;

struct sigaction programs_action_now() {
  for (;;) {
    uint32_t before = turns.load(std::memory_order_acquire);
    struct sigaction copy = programs_action;
    std::atomic_thread_fence(std::memory_order_acquire);
    // A change that the handler has interrupted does not go on until it returns: half of the old
    // one and half of the new is then the most that is known.
    if (before == turns.load(std::memory_order_relaxed) || before & 1) return copy;
  }
}

timespec timespec_of(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

// Of the calling thread, or of the whole process.
uint64_t cpu_ns(long clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec time = {};
  sys::call(SYS_clock_gettime, clock, sys::arg(&time));
  return static_cast<uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(time.tv_nsec);
}

// Writes a sample; false: it was dropped.
bool tell(ThreadState* t, uintptr_t frame, bool knows_where, uint64_t ns) {
  begin_recording(t, frame);
  StackId stack = StackId::kNone;
  uint64_t flags = t->cpu_of_recorder ? wire::kCpuOfRecorder : 0;
  bool told = (!knows_where || stack_of(t, frame, &stack)) &&
              t->lane.cpu_sample(tick_in_order(t), ns, stack, flags);
  if (told)
    process().cpu_told_ns.fetch_add(ns, std::memory_order_relaxed);
  else
    t->lane.count_drop();
  end_recording(t);
  return told;
}

// What the thread has used since it last told; its hook has this frame.
void tell_cpu(ThreadState* t, uintptr_t frame, bool knows_where) {
  uint64_t now = cpu_ns();
  if (now > t->cpu_told_ns && tell(t, frame, knows_where, now - t->cpu_told_ns))
    t->cpu_told_ns = now;
  t->cpu_due = t->cpu_of_recorder = false;
}

// As if the program's own handler had been called, or none were there.
void pass_on(int signal, siginfo_t* info, void* context) {
  struct sigaction action = programs_action_now();
  if (action.sa_flags & SA_RESETHAND) {
    struct sigaction plain = {};
    exchange_cpu_action(&plain, nullptr);
  }
  if (action.sa_flags & SA_SIGINFO) return action.sa_sigaction(signal, info, context);
  if (action.sa_handler == SIG_IGN) return;
  if (action.sa_handler != SIG_DFL) return action.sa_handler(signal);
  // It is to end the process. The signal is blocked while we are here; it comes when we return.
  struct sigaction plain = {};
  plain.sa_handler = SIG_DFL;
  real.sigaction(signal, &plain, nullptr);
  sys::call(SYS_tgkill, sys::pid(), sys::tid(), signal);
}

// Whether this is a handler within one of the program's that has a stack of its own, and there is
// no room for us on it.
bool is_at_end_of_stack(const stack_t& alternate, uintptr_t frame) {
  constexpr uintptr_t kRoom = 3 << 10;
  auto low = reinterpret_cast<uintptr_t>(alternate.ss_sp);
  return !(alternate.ss_flags & SS_DISABLE) && frame - low < alternate.ss_size &&
         frame - low < kRoom;
}

void on_cpu_signal(int signal, siginfo_t* info, void* context) {
  if (info->si_code != SI_TIMER || info->si_value.sival_ptr != &our_mark)
    return pass_on(signal, info, context);
  ThreadState* t = thread;
  // What is passed over here is part of the next sample.
  if (t->outer == 0 || t->nesting > 0 || t->cpu_timer == 0) return;
  if (is_at_end_of_stack(static_cast<const ucontext_t*>(context)->uc_stack, MSCOPE_FRAME)) return;
  if (t->outer != ThreadState::kIdle || t->recording) {
    if (!t->cpu_due) t->cpu_of_recorder = t->recording != 0;
    t->cpu_due = true;
    return;
  }
  uintptr_t frame = MSCOPE_FRAME;
  enter(t, Op::kMmap, frame);
  tell_cpu(t, frame, true);
  leave(t);
}

// `action`: what else the program wants to be blocked meanwhile; what was there before goes there.
void catch_with_mask(struct sigaction& action) {
  struct sigaction ours = action, before = {};
  ours.sa_sigaction = on_cpu_signal;
  // Not on the program's stack for signals: it may be just large enough for what it is meant for.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | (action.sa_flags & SA_NODEFER);
  real.sigaction(kCpuSignal, &ours, &before);
  if (before.sa_sigaction != on_cpu_signal) action = before;
}

// A program that has changed it by a system call of its own must not be hit by our signals.
bool is_caught() {
  struct sigaction now = {};
  real.sigaction(kCpuSignal, nullptr, &now);
  return now.sa_sigaction == on_cpu_signal;
}

// 1 + the kernel's number of each thread's timer, or 0.
std::atomic<int32_t>* place_for_timer() {
  for (std::atomic<int32_t>& place : process().cpu_timers) {
    int32_t nobody = 0;
    if (place.load(std::memory_order_relaxed) == 0 &&
        place.compare_exchange_strong(nobody, Process::kTaken))
      return &place;
  }
  return nullptr;
}

bool is_blocked() {
  KernelSigset blocked;
  sys::call(SYS_rt_sigprocmask, SIG_BLOCK, 0, sys::arg(&blocked), sizeof blocked);
  return blocked.bits >> (kCpuSignal - 1) & 1;
}

void remove_timer(std::atomic<int32_t>* place) {
  int32_t number = place->exchange(Process::kTaken);
  if (number > 0) sys::call(SYS_timer_delete, number - 1);
}

void start_timer(ThreadState* t) {
  if (t->tid <= 0 || is_blocked() || !is_caught()) return;
  std::atomic<int32_t>* place = place_for_timer();
  if (!place) return;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kCpuSignal;
  event.sigev_value.sival_ptr = &our_mark;
  event._sigev_un._tid = sys::tid();
  int number = -1;
  if (sys::failed(sys::call(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, sys::arg(&event),
                            sys::arg(&number)))) {
    place->store(0);
    return;
  }
  t->cpu_timer = place;
  place->store(number + 1);
  // Not at once, even if it is high time: the kernel looks at its next tick, wherever the thread is
  // then. Else whoever unblocks signals would have all the time before.
  constexpr uint64_t kSoonNs = 50'000;
  uint64_t period = uint64_t{inherited.cpu_period_us} * 1000;
  uint64_t due = t->cpu_told_ns + period, soon = cpu_ns() + kSoonNs;
  itimerspec times = {timespec_of(period), timespec_of(due > soon ? due : soon)};
  sys::call(SYS_timer_settime, number, TIMER_ABSTIME, sys::arg(&times), 0);
}

}  // namespace

void catch_cpu_signal() {
  catch_with_mask(programs_action);
  inherited.catches_cpu_signal = true;
  process().cpu_before_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns();
}

void stop_cpu_timer(ThreadState* t) {
  std::atomic<int32_t>* place = t->cpu_timer;
  t->cpu_timer = nullptr;
  if (!place) return;
  remove_timer(place);
  place->store(0);
}

void stop_all_cpu_timers() {
  if (!samples_cpu()) return;
  for (std::atomic<int32_t>& place : process().cpu_timers)
    if (place.load() > 0) remove_timer(&place);
}

void begin_cpu(ThreadState* t, uintptr_t frame) {
  if (t->cpu_timer || sys::is_sandboxed()) return;
  constexpr uint64_t kPeriodsToBlame = 20;
  uint64_t untold = cpu_ns() - t->cpu_told_ns;
  bool first = t->cpu_told_ns == 0;
  if (first || untold > kPeriodsToBlame * inherited.cpu_period_us * 1000) tell_last_cpu(t, frame);
  start_timer(t);
}

void tell_last_cpu(ThreadState* t, uintptr_t frame) {
  if (!samples_cpu() || sys::is_sandboxed() || t->outer != ThreadState::kIdle) return;
  enter(t, Op::kMmap, frame);
  tell_cpu(t, frame, false);
  leave(t);
}

void tell_cpu_at_exit(uintptr_t frame) {
  if (!samples_cpu() || sys::is_sandboxed() || !inherited.process || process().pid != sys::pid() ||
      thread->outer == 0)
    return;
  stop_all_cpu_timers();
  tell_last_cpu(thread, frame);
  uint64_t all = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - process().cpu_before_ns;
  uint64_t told = process().cpu_told_ns.load();
  if (all <= told + uint64_t{inherited.cpu_period_us} * 1000) return;  // Only how clocks are read.
  static constinit uint64_t others_ns = 0;
  others_ns = all - told;
  with_late_state([](ThreadState* late) { tell(late, MSCOPE_FRAME, false, others_ns); });
}

// A program that returns from main comes by no hook of ours.
#ifdef MSCOPE_DETAILED
[[gnu::destructor]] static void unloaded() { tell_cpu_at_exit(MSCOPE_FRAME); }
#endif

// A signal that comes while a hook is at work is told when the hook leaves, as its caller's time.
void tell_cpu_of_hook(ThreadState* t, uintptr_t frame) { tell_cpu(t, frame, true); }

void hide_cpu_action(struct sigaction* action) {
  if (action && action->sa_sigaction == on_cpu_signal) *action = programs_action_now();
}

bool exchange_cpu_action(const struct sigaction* now, struct sigaction* before) {
  if (!samples_cpu() || !inherited.catches_cpu_signal) return false;
  struct sigaction was = programs_action_now();
  if (now) {
    struct sigaction wanted = *now;
    turns.fetch_add(1, std::memory_order_acq_rel);
    programs_action = wanted;
    turns.fetch_add(1, std::memory_order_release);
    catch_with_mask(wanted);
  }
  if (before) *before = was;
  return true;
}

}  // namespace malloscope::record
