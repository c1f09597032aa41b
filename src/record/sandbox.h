// SPDX-License-Identifier: Apache-2.0
// A program that gives up system calls, by prctl or by the system call `seccomp`, may be killed
// by the next one that we make. So we take what memory we may need before, and make none after.
// A program that it starts is in the same sandbox, so it is started without the recorder.

#pragma once

#include <linux/seccomp.h>
#include <sys/prctl.h>

#include "base/syscall.h"
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
  bool gives_up_calls = kind != Sandbox::kNoClock, was = sys::is_sandboxed();
  if (gives_up_calls && !was) {
    process().arena.reserve();
    lead_children(false);
    sys::sandboxed.store(true);
  }
  if (kind != Sandbox::kFilter) inherited.clock_forbidden.store(1);
  auto result = enter();
  if (result < 0) {
    if (kind != Sandbox::kFilter) inherited.clock_forbidden.store(0);
    if (gives_up_calls && !was) {
      sys::sandboxed.store(false);
      if (inherited.shared) lead_children(true);
    }
  }
  return result;
}

}  // namespace malloscope::record
