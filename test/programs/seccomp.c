// SPDX-License-Identifier: Apache-2.0
// After start-up the recorder needs no system call and no clock that a sandbox
// may take away: a filter, strict mode, and a forbidden rdtsc (F8).
//
// run: filter
// run: filter_exit exit=6
// run: strict exit=3
// run: no_clock
// expect: churn allocations=100000 allocated_bytes=2400000 temporary=100000
// expect filter_exit: deep allocations=3000 live_blocks=3000
// counter strict: off

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "known.h"

// Only what the program itself needs; anything else ends it with SIGSYS.
static void allow_only_its_own(void) {
  int allowed[] = {SYS_read, SYS_write, SYS_exit, SYS_exit_group, SYS_brk, SYS_rt_sigreturn};
  enum { kAllowed = sizeof allowed / sizeof *allowed };
  struct sock_filter code[2 * kAllowed + 2];
  int n = 0;
  code[n++] =
      (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (int i = 0; i < kAllowed; ++i) {
    code[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[i], 0, 1);
    code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  }
  code[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  struct sock_fprog program = {(unsigned short)n, code};
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

// The unwinder needs more memory for such a stack than it has.
OPAQUE static void deep(long n) {
  volatile char *p = (volatile char *)malloc(24);
  p[0] = 1;
  if (n > 1) deep(n - 1);
  __asm__ volatile("");
}

int main(int argc, char **argv) {
  (void)argc;
  churn(50000, 24);
  if (is(argv, "strict")) {
    MUST(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
    churn(50000, 24);
    say("strict\n");
    syscall(SYS_exit, 3);
  }
  if (is(argv, "no_clock")) {
    MUST(prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) == 0);
  } else {
    allow_only_its_own();
  }
  churn(50000, 24);
  if (is(argv, "filter_exit")) deep(3000);
  say("still here\n");
  if (is(argv, "filter_exit")) exit(6);
  return 0;
}
