// SPDX-License-Identifier: Apache-2.0
// Signals arrive while the program is inside malloc, and their handlers
// allocate or jump away. The allocator behind is one that allows it (bump.c),
// so whatever goes wrong is ours. Every call is counted once (F18, F19).
//
// build: -Wl,-rpath,$ORIGIN -L. -lbump
// run: allocate n=2000 long=6000
// run: allocate_in_threads n=2000 long=6000
// run: jump n=2000 long=6000
// expect allocate: in_handler allocations=3*n allocated_bytes=3*n*40
// expect allocate_in_threads: in_handler allocations=3*n allocated_bytes=3*n*40
// expect jump: after_the_jump allocations=n allocated_bytes=56*n live_blocks=n
// expect: totals unmatched_frees=0 order_violations=0
// counter: off

#include <pthread.h>
#include <setjmp.h>
#include <sys/time.h>

#include "known.h"

static volatile long handled, limit;
static sigjmp_buf back;
static volatile int jumps, armed;

OPAQUE static void in_handler(void) {
  for (int i = 0; i < 3; ++i) {
    volatile char *p = malloc(40);
    p[0] = 1;
    if (i == 1) free((void *)p);
  }
}

static void on_signal(int unused) {
  (void)unused;
  if (jumps) {
    if (!armed) return;
    armed = 0;
    ++handled;
    siglongjmp(back, 1);
  }
  int saved = errno;
  if (__atomic_fetch_add(&handled, 1, __ATOMIC_RELAXED) < limit) in_handler();
  errno = saved;
}

static void *allocate(void *unused) {
  while (handled < limit) churn(100, 24);
  return unused;
}

// After a jump out of a hook the next call must be recorded like any other.
OPAQUE static void after_the_jump(void) {
  volatile char *p = malloc(56);
  p[0] = 1;
}

int main(int argc, char **argv) {
  (void)argc;
  limit = number(argv, 2000);
  struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_NODEFER};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  pthread_t threads[3];
  jumps = is(argv, "jump");
  setitimer(ITIMER_REAL, &often, NULL);
  if (jumps) {
    for (volatile long done = 0; done < limit; ++done) {
      if (sigsetjmp(back, 1) == 0) {
        armed = 1;
        for (;;) churn(100, 24);
      }
      after_the_jump();
    }
  } else {
    int more = is(argv, "allocate_in_threads") ? 3 : 0;
    for (int i = 0; i < more; ++i) pthread_create(&threads[i], NULL, allocate, NULL);
    allocate(NULL);
    for (int i = 0; i < more; ++i) pthread_join(threads[i], NULL);
  }
  setitimer(ITIMER_REAL, &never, NULL);
  say("done\n");
  return 0;
}
