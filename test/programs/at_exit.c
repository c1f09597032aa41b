// SPDX-License-Identifier: Apache-2.0
// The program ends while detached threads still allocate, or its main thread
// leaves before the others (F15).
//
// run: detached
// run: main_leaves_first
// expect: keep allocations=>=1000
// counter detached: off
// expect main_leaves_first: keep allocations=2000 live_blocks=2000

#include <pthread.h>

#include "known.h"

static void *for_ever(void *unused) {
  for (;;) churn(1000, 64);
  return unused;
}

static void *later(void *unused) {
  usleep(100000);
  keep(1000, 40);
  say("the thread is the last\n");
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  keep(1000, 40);
  pthread_t thread;
  if (is(argv, "main_leaves_first")) {
    pthread_create(&thread, NULL, later, NULL);
    pthread_exit(NULL);
  }
  for (int i = 0; i < 4; ++i) pthread_create(&thread, NULL, for_ever, NULL), pthread_detach(thread);
  usleep(50000);
  say("bye\n");
  return 0;
}
