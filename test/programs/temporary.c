// SPDX-License-Identifier: Apache-2.0
// A temporary block dies by its own thread before that thread's next
// allocation; another thread's free, or an address come back, is not that.
//
// expect: churn allocations=1000 temporary=1000
// expect: in_pairs allocations=2000 temporary=1000
// expect: freed_by_another allocations=100 temporary=0
// expect: grown_first allocations=100 temporary=0

#include <pthread.h>

#include "known.h"

OPAQUE static void in_pairs(void) {
  for (int i = 0; i < 1000; ++i) {
    volatile char *a = malloc(40), *b = malloc(48);
    a[0] = b[0] = 1;
    free((void *)b);  // Temporary.
    free((void *)a);  // Not: b came between.
  }
}

static void *free_it(void *p) {
  free(p);
  return NULL;
}

static void *blocks[100];

OPAQUE static void freed_by_another(void) {
  for (int i = 0; i < 100; ++i) blocks[i] = malloc(56);
}

static void let_another_free(void) {
  pthread_t thread;
  for (int i = 0; i < 100; ++i) {
    pthread_create(&thread, NULL, free_it, blocks[i]);
    pthread_join(thread, NULL);
  }
}

OPAQUE static void grown_first(void) {
  for (int i = 0; i < 100; ++i) {
    char *p = malloc(40);
    p[0] = 1;
    p = realloc(p, 4000);
    free(p);
  }
}

int main(void) {
  churn(1000, 40);
  in_pairs();
  freed_by_another();
  let_another_free();
  grown_first();
  say("done\n");
  return 0;
}
