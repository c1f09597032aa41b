// SPDX-License-Identifier: Apache-2.0
// Threads load and unload the same libraries at the same time, so that one of
// them unmaps what another has just found (F3, F25).
//
// build: -ldl
// run: at_once n=600 long=10000
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

#include "known.h"

enum { kThreads = 8, kLibraries = 6 };
static char folder[400];
static long rounds;

// Each takes all of them as often, in an order of its own.
static void *load_and_unload(void *own) {
  long step = own ? 5 : 1;
  for (long i = 0; i < kLibraries * rounds; ++i) {
    char path[512];
    snprintf(path, sizeof path, "%s/libturn_%c.so", folder, "abcdef"[i * step % kLibraries]);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    void (*turn)(void);
    *(void **)&turn = dlsym(library, "turn");
    turn();
    dlclose(library);
  }
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  char *slash = strrchr(argv[0], '/');
  MUST(slash);
  snprintf(folder, sizeof folder, "%.*s", (int)(slash - argv[0]), argv[0]);
  rounds = number(argv, 1000);
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i)
    pthread_create(&threads[i], NULL, load_and_unload, i % 2 ? argv : NULL);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  say("done\n");
  return 0;
}
