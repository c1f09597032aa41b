// SPDX-License-Identifier: Apache-2.0
// Where a program spends its CPU time (`run --cpu`; detailed.h). Every thread has a timer of the
// kernel's that goes by the CPU time of that thread alone, and so never fires while it waits. Its
// signal, SIGPROF, is taken by a handler of ours, which writes the stack that it has interrupted
// and how much CPU time the thread has used since it last did. So the sum is what was used, even
// where a signal comes late or not at all.
//
// Such timers are gone after a fork and after an exec, with signals of theirs that have not arrived
// yet: no program is ever hit by one that it does not expect. The program's own use of SIGPROF goes
// on as if we were not there (hooks_signals.cc).

#pragma once

#include <signal.h>

#include "record/detailed.h"

namespace malloscope::record {

inline constexpr int kCpuSignal = SIGPROF;

MSCOPE_FAST bool samples_cpu() { return kDetailed && inherited.cpu_period_us != 0; }

// Once for a program, before its first thread has a timer.
void catch_cpu_signal();

// Gives the calling thread its timer, if it has none. Where it has computed for a while without
// one, nobody knows. A thread that blocks the signal has none: the signal would wait for whoever
// asks for any (sigwait, signalfd).
//
// Whoever calls this or stop_cpu_timer() has set ThreadState::cpu_changing, and does neither if he
// finds it set: he is a handler that has interrupted the other, and what he does to the mask is
// undone when he returns.
MSCOPE_SLOW void begin_cpu(ThreadState* t, uintptr_t frame);
void stop_cpu_timer(ThreadState* t);

// At the end of the process, and before it gives up system calls: the return from a signal is one.
void stop_all_cpu_timers();

// At the end of a thread, or before an exec: what it has used since its last sample, of which
// nobody knows where.
void tell_last_cpu(ThreadState* t, uintptr_t frame);
// At the end of the process: likewise, and what threads that are still there have used.
void tell_cpu_at_exit(uintptr_t frame);

// If an action that the kernel tells is ours, it becomes the program's: a child that is not
// recorded has our handler from its parent.
void hide_cpu_action(struct sigaction* action);
// What the program wants to be done at the signal. `now` is what it asks for, if it does.
bool exchange_cpu_action(const struct sigaction* now, struct sigaction* before);

}  // namespace malloscope::record
