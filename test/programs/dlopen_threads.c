// SPDX-License-Identifier: Apache-2.0
// Threads load and unload the same libraries at the same time, so that one of
// them unmaps what another has just found (F3, F25). If few of them do, and take
// their time, an unload is now and then alone, though the last stacks were
// recorded while others went on.
//
// build: -ldl
// run: at_once n=600 long=10000
// run: with_pauses n=200 long=3000
// expect: allocate_in_a allocations=80*n allocated_bytes=3200*n
// expect: allocate_in_b allocations=80*n
// expect: allocate_in_c allocations=80*n
// expect: allocate_in_d allocations=80*n
// expect: allocate_in_e allocations=80*n
// expect: allocate_in_f allocations=80*n
// expect: recorder lost=0 unwind_failures=0

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "known.h"

enum { kThreads = 8, kPausing = 4, kLibraries = 6 };
static char folder[400];
static long rounds;
static int pauses;

// Up to half a millisecond, or none at all.
static void pause_or_not(unsigned *chance) {
  *chance = *chance * 1664525 + 1013904223;
  struct timespec time = {0, (*chance >> 9) % 500000};
  if (pauses && *chance >> 31) nanosleep(&time, NULL);
}

// Each takes all of them as often, in an order of its own.
static void *load_and_unload(void *own) {
  long step = own ? 5 : 1;
  unsigned chance = (unsigned)pthread_self();
  for (long i = 0; i < kLibraries * rounds; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/libturn_%c.so", folder, "abcdef"[i * step % kLibraries]);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    void (*turn)(void);
    *(void **)&turn = dlsym(library, "turn");
    turn();
    pause_or_not(&chance);
    dlclose(library);
    pause_or_not(&chance);
  }
  return NULL;
}

int main(int argc, char **argv) {
  char *slash = strrchr(argv[0], '/');
  MUST(slash);
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - argv[0]), argv[0]);
  pauses = argc > 1 && strcmp(argv[1], "with_pauses") == 0;
  int count = pauses ? kPausing : kThreads;
  rounds = number(argv, 1000) * kThreads / count;
  pthread_t threads[kThreads];
  for (int i = 0; i < count; ++i)
    pthread_create(&threads[i], NULL, load_and_unload, i % 2 ? argv : NULL);
  for (int i = 0; i < count; ++i) pthread_join(threads[i], NULL);
  say("done\n");
  return 0;
}
