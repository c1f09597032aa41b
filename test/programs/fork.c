// SPDX-License-Identifier: Apache-2.0
// A child made by fork or by a raw clone has an account of its own: what it
// allocates is recorded, what it inherited and frees is told apart (F4).
//
// run: plain
// run: killed
// run: raw_clone
// run: grandchild
// expect: keep allocations=3000 allocated_bytes=120000
// expect plain: processes count=2
// expect killed: processes count=2
// expect raw_clone: processes count=2
// expect grandchild: processes count=3
// expect plain: totals inherited_frees=500 unmatched_frees=0
// expect raw_clone: totals inherited_frees=500 unmatched_frees=0
// counter raw_clone: off

#include "known.h"

OPAQUE static void child_work(char **argv, void **inherited) {
  keep(1000, 40);
  for (int i = 0; i < 500; ++i) free(inherited[i]);
  churn(100, 32);
  if (is(argv, "killed")) kill(getpid(), SIGKILL);
  if (is(argv, "grandchild")) {
    pid_t pid = fork();
    if (pid == 0) keep(1000, 40), _exit(8);
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    tell_end(status);
  }
  _exit(7);
}

int main(int argc, char **argv) {
  (void)argc;
  static void *blocks[500];
  for (int i = 0; i < 500; ++i) blocks[i] = malloc(64);
  keep(is(argv, "grandchild") ? 500 : 1000, 40);
  pid_t pid = is(argv, "raw_clone") ? (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork();
  if (pid == 0) child_work(argv, blocks);
  keep(is(argv, "grandchild") ? 500 : 1000, 40);
  int status;
  MUST(waitpid(pid, &status, 0) == pid);
  tell_end(status);
  return 0;
}
