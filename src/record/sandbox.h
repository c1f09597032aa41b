// SPDX-License-Identifier: Apache-2.0
// A program that gives up system calls, by prctl or by the system call `seccomp`, may be killed
// by the next one that we make. So we take what memory we may need before, and make none after.
// A program that it starts is in the same sandbox, so it is started without the recorder.
//
// A child of vfork does all this in its parent's memory. Until it execs or exits the parent is held
// to its sandbox as well, since nothing in memory tells the two apart.

#pragma once

#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "base/syscall.h"
#include "record/cpu_timer.h"
#include "record/process.h"

namespace malloscope::record {

enum class Sandbox {
  kNone,
  kFilter,   // Which calls are left is not known.
  kStrict,   // None that we make; and no clock.
  kNoClock,  // Reading the clock raises a signal.
};

inline Sandbox sandbox_of_prctl(long option, unsigned long argument) {
  if (option == PR_SET_TSC && argument == PR_TSC_SIGSEGV) return Sandbox::kNoClock;
  if (option != PR_SET_SECCOMP) return Sandbox::kNone;
  return argument == SECCOMP_MODE_STRICT ? Sandbox::kStrict : Sandbox::kFilter;
}
inline Sandbox sandbox_of_seccomp(unsigned long operation) {
  return operation == SECCOMP_SET_MODE_STRICT   ? Sandbox::kStrict
         : operation == SECCOMP_SET_MODE_FILTER ? Sandbox::kFilter
                                                : Sandbox::kNone;
}

// `enter` makes the real call and returns 0 if it was successful.
template <typename Enter>
auto in_sandbox(Sandbox kind, Enter&& enter) {
  if (kind == Sandbox::kNone || !inherited.process) return enter();
  bool outside = !sys::is_sandboxed() && !inherited.clock_forbidden.load();
  bool gives_up_calls = kind != Sandbox::kNoClock && !sys::is_sandboxed();
  bool gives_up_clock = kind != Sandbox::kFilter && !inherited.clock_forbidden.load();
  // A second sandbox may be a child's or the parent's own, and nobody may be asked any more: then
  // it is for good.
  bool was_childs = process().childs_sandbox.load();
  bool is_childs = outside && process().pid != 0 && sys::pid() != process().pid;
  if (gives_up_calls) {
    process().arena.reserve();
    if (!is_childs) stop_all_cpu_timers();
    if (!is_childs) lead_children(false);
    sys::sandboxed.store(true);
  }
  if (gives_up_clock) inherited.clock_forbidden.store(1);
  process().childs_sandbox.store(is_childs);
  auto result = enter();
  if (result < 0) {
    process().childs_sandbox.store(was_childs);
    if (gives_up_clock) inherited.clock_forbidden.store(0);
    if (gives_up_calls) {
      sys::sandboxed.store(false);
      if (!is_childs && inherited.shared) lead_children(true);
    }
  }
  return result;
}

// `leave` execs or exits, and returns only if it could not (or has spawned a process). A vfork
// child has set its sandbox in its parent's memory; the parent, who is in none, goes on from here.
template <typename Leave>
auto out_of_childs_sandbox(Leave&& leave) {
  if (!inherited.process || !process().childs_sandbox.load()) return leave();
  bool calls = sys::sandboxed.exchange(false);
  uint32_t clock = inherited.clock_forbidden.exchange(0);
  process().childs_sandbox.store(false);
  auto result = leave();
  sys::sandboxed.store(calls);
  inherited.clock_forbidden.store(clock);
  process().childs_sandbox.store(true);
  return result;
}

}  // namespace malloscope::record
