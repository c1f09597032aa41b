// SPDX-License-Identifier: Apache-2.0
// What the CPU timers (cpu_timer.h) need of a program's threads and signals: each thread from its
// first instruction on, and SIGPROF. What the program does with that signal is kept for it and not
// told to the kernel, whose handler stays ours; it is called for all signals that are not ours.
// Only in the detailed recorder, and without --cpu only a way through.

#include "record/detailed.h"

#ifdef MSCOPE_DETAILED

#include <pthread.h>
#include <signal.h>

#include "base/attributes.h"
#include "base/syscall.h"
#include "record/cpu_timer.h"
#include "record/real.h"
#include "record/recorder.h"

using namespace malloscope;
using namespace malloscope::record;

// A child of vfork has signals and timers of its own, but our memory is its parent's.
static bool is_own_process() {
  return inherited.process && process().pid == sys::pid() &&
         process().phase.load(std::memory_order_relaxed) == Phase::kRecording;
}

MSCOPE_EXPORT int sigaction(int signal, const struct sigaction* now, struct sigaction* before) {
  if (signal != kCpuSignal || !samples_cpu()) return real.sigaction(signal, now, before);
  if (is_own_process() && exchange_cpu_action(now, before)) return 0;
  int result = real.sigaction(signal, now, before);
  if (result == 0) hide_cpu_action(before);
  return result;
}

// The other ways to say the same, each with its own flags.
static sighandler_t set_handler(int signal, sighandler_t handler, int flags,
                                sighandler_t (*otherwise)(int, sighandler_t)) {
  if (signal != kCpuSignal || !samples_cpu() || handler == SIG_ERR)
    return otherwise(signal, handler);
  struct sigaction now = {}, before = {};
  now.sa_handler = handler;
  now.sa_flags = flags;
  return sigaction(signal, &now, &before) == 0 ? before.sa_handler : SIG_ERR;
}
MSCOPE_EXPORT sighandler_t signal(int number, sighandler_t handler) {
  return set_handler(number, handler, SA_RESTART, real.signal);
}
MSCOPE_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) {
  return signal(number, handler);
}
MSCOPE_EXPORT sighandler_t ssignal(int number, sighandler_t handler) {
  return signal(number, handler);
}
MSCOPE_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) {
  return set_handler(number, handler, static_cast<int>(SA_RESETHAND | SA_NODEFER),
                     real.__sysv_signal);
}
MSCOPE_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler) {
  return __sysv_signal(number, handler);
}
MSCOPE_EXPORT int sigignore(int number) {
  struct sigaction ignore = {};
  ignore.sa_handler = SIG_IGN;
  return sigaction(number, &ignore, nullptr);
}
MSCOPE_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before);
MSCOPE_EXPORT sighandler_t sigset(int number, sighandler_t handler) {
  // It also unblocks the signal; SIG_HOLD only blocks it.
  if (number != kCpuSignal || !samples_cpu() || handler == SIG_ERR)
    return real.sigset(number, handler);
  struct sigaction now = {}, before = {};
  now.sa_handler = handler;
  bool holds = handler == SIG_HOLD;
  if (sigaction(number, holds ? nullptr : &now, &before) != 0) return SIG_ERR;
  sigset_t set = {}, masked = {};
  set.__val[0] = 1UL << (kCpuSignal - 1);
  if (sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &set, &masked) != 0) return SIG_ERR;
  return masked.__val[0] & set.__val[0] ? SIG_HOLD : before.sa_handler;
}

// While a thread blocks the signal it has no timer.
template <typename Change>
static int change_mask(int how, const sigset_t* set, Change change) {
  ThreadState* t = thread;
  if (!samples_cpu() || !set || t->outer == 0 || t->nesting > 0 || t->cpu_changing ||
      !is_own_process())
    return change();
  t->cpu_changing = true;
  ordered_for_signals();
  bool named = set->__val[0] >> (kCpuSignal - 1) & 1;
  if (named && how != SIG_UNBLOCK) stop_cpu_timer(t);
  int result = change();
  begin_cpu(t, MSCOPE_FRAME);
  ordered_for_signals();
  t->cpu_changing = false;
  return result;
}
MSCOPE_EXPORT int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return change_mask(how, set, [=] { return real.pthread_sigmask(how, set, before); });
}
MSCOPE_EXPORT int sigprocmask(int how, const sigset_t* set, sigset_t* before) {
  return change_mask(how, set, [=] { return real.sigprocmask(how, set, before); });
}

// A thread may compute for hours before its first call of a hook. So it is met where it starts; no
// frame of ours stays on its stack.
static void* begin_thread(void* argument) {
  auto* place = static_cast<ThreadStart*>(argument);
  auto routine = place->routine;
  void* routines = place->argument;
  place->taken.store(0, std::memory_order_release);
  if (thread->outer == 0) wake_thread();
  return routine(routines);
}

MSCOPE_EXPORT int pthread_create(pthread_t* made, const pthread_attr_t* attributes,
                                 void* (*routine)(void*), void* argument) {
  ThreadStart* place = samples_cpu() && is_own_process() ? process().thread_starts.take() : nullptr;
  // Without one it is met at its first hook.
  if (!place) return real.pthread_create(made, attributes, routine, argument);
  place->routine = routine;
  place->argument = argument;
  int result = real.pthread_create(made, attributes, begin_thread, place);
  if (result != 0) place->taken.store(0, std::memory_order_release);
  return result;
}

#endif
