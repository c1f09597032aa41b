// SPDX-License-Identifier: Apache-2.0
// The same filter set by the system call itself, past prctl's wrapper, and a
// long run under it: more events than any ring holds (F8).
//
// expect: churn allocations=3000000 allocated_bytes=72000000 temporary=3000000
// expect: recorder lost=0

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#include "known.h"

#define ALLOW(call)                                          \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

int main(void) {
  struct sock_filter code[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)), ALLOW(SYS_write),
      ALLOW(SYS_exit_group), ALLOW(SYS_brk), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  struct sock_fprog program = {sizeof code / sizeof *code, code};
  churn(1000000, 24);
  MUST(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  MUST(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0);
  churn(2000000, 24);
  say("still here\n");
  return 0;
}
