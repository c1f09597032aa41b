// SPDX-License-Identifier: Apache-2.0
// The function `syscall`, by which libseccomp and others set their filters, and some exec. All
// other calls must pass as if we were not there: without a frame of ours on the stack, since some
// return twice (clone, vfork), so it is a jump and not a call.

#include <errno.h>

#include "base/attributes.h"
#include "record/real.h"
#include "record/sandbox.h"

using namespace malloscope;
using namespace malloscope::record;

// In the manner of the real one, for as long as that is not known.
extern "C" [[gnu::visibility("hidden"), gnu::used]] long mscope_plain_syscall(long number, long a,
                                                                              long b, long c,
                                                                              long d, long e,
                                                                              long f) {
  long result = sys::call(number, a, b, c, d, e, f);
  if (!sys::failed(result)) return result;
  errno = static_cast<int>(-result);
  return -1;
}

namespace malloscope::record {
constinit Syscall mscope_next_syscall = mscope_plain_syscall;

void resolve_syscall() {
  if (void* next = next_definition("syscall"))
    mscope_next_syscall = reinterpret_cast<Syscall>(next);
}
}  // namespace malloscope::record

extern "C" [[gnu::visibility("hidden"), gnu::used]] long mscope_sandbox_syscall(long number, long a,
                                                                                long b, long c,
                                                                                long d, long e,
                                                                                long f) {
  Sandbox kind = number == SYS_seccomp ? sandbox_of_seccomp(static_cast<unsigned long>(a))
                                       : sandbox_of_prctl(a, static_cast<unsigned long>(b));
  return in_sandbox(kind, [=] { return mscope_next_syscall(number, a, b, c, d, e, f); });
}

#if defined(__x86_64__)
static_assert(SYS_seccomp == 317 && SYS_prctl == 157);
static_assert(SYS_execve == 59 && SYS_execveat == 322);
asm(R"(
    .text
    .globl syscall
    .type syscall, @function
syscall:
    .cfi_startproc
    cmp $317, %rdi
    je 1f
    cmp $157, %rdi
    je 1f
    cmp $59, %rdi
    je 2f
    cmp $322, %rdi
    je 2f
    jmp *mscope_next_syscall(%rip)
1:  jmp mscope_sandbox_syscall
2:  jmp mscope_exec_syscall
    .cfi_endproc
    .size syscall, . - syscall
)");
#else
#error "the jump for this CPU is to be added here"
#endif
