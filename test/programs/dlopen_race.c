// SPDX-License-Identifier: Apache-2.0
// Libraries come and go, the loader's lock is taken again and again, threads
// ask for their stacks, and others allocate all the while (F3, F25).
//
// build: -ldl
// run: race n=300 long=5000
// expect: churn allocations=>=1000
// expect: allocate_in_a allocations=10*n allocated_bytes=400*n
// expect: allocate_in_b allocations=10*n

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>

#include "known.h"

static volatile int stop;

static void *allocate(void *unused) {
  do churn(1000, 64);
  while (!stop);
  return unused;
}

static int in_the_lock(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)info, (void)size, (void)unused;
  churn(1, 40);
  return 0;
}

static void *iterate(void *unused) {
  while (!stop) {
    dl_iterate_phdr(in_the_lock, NULL);
    pthread_attr_t attributes;
    pthread_getattr_np(pthread_self(), &attributes);
    pthread_attr_destroy(&attributes);
  }
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  char *slash = strrchr(argv[0], '/'), path[512];
  if (slash) *slash = 0;
  pthread_t threads[3];
  pthread_create(&threads[0], NULL, allocate, NULL);
  pthread_create(&threads[1], NULL, allocate, NULL);
  pthread_create(&threads[2], NULL, iterate, NULL);
  for (long i = 0; i < 2 * number(argv, 300); ++i) {
    snprintf(path, sizeof path, "%s/libturn_%c.so", argv[0], "ab"[i % 2]);
    void *library = dlopen(path, RTLD_NOW);
    MUST(library);
    void (*turn)(void);
    *(void **)&turn = dlsym(library, "turn");
    turn();
    dlclose(library);
  }
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  say("done\n");
  return 0;
}
