// SPDX-License-Identifier: Apache-2.0
// Every way a process can end; the calls before it are all in the trace (F16).
//
// run: return
// run: exit exit=3
// run: _exit exit=4
// run: exit_group exit=5
// run: quick_exit exit=6
// run: abort exit=-6
// run: segv exit=-11
// run: trap exit=-5
// run: kill exit=-9
// run: term exit=-15
// run: pipe exit=-13
// run: pthread_exit
// run: stack_overflow exit=-11
// expect: keep allocations=100000 allocated_bytes=4800000 live_blocks=100000
// expect: churn allocations=1000 allocated_bytes=24000 live_blocks=0 temporary=1000

#include <pthread.h>

#include "known.h"

OPAQUE static long dive(long depth) {
  volatile char room[256];
  room[0] = (char)depth;
  return depth < 0 ? room[0] : dive(depth + 1) + room[0];
}

int main(int argc, char **argv) {
  (void)argc;
  keep(100000, 48);
  churn(1000, 24);
  say("about to end\n");
  if (is(argv, "exit")) exit(3);
  if (is(argv, "_exit")) _exit(4);
  if (is(argv, "exit_group")) syscall(SYS_exit_group, 5);
  if (is(argv, "quick_exit")) quick_exit(6);
  if (is(argv, "abort")) abort();
  if (is(argv, "segv")) *(volatile int *)8 = 1;
  if (is(argv, "trap")) raise(SIGTRAP);
  if (is(argv, "kill")) kill(getpid(), SIGKILL);
  if (is(argv, "term")) kill(getpid(), SIGTERM);
  if (is(argv, "pipe")) raise(SIGPIPE);
  if (is(argv, "pthread_exit")) pthread_exit(NULL);
  if (is(argv, "stack_overflow")) return (int)dive(0);
  return 0;
}
