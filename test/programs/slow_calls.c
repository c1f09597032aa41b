// SPDX-License-Identifier: Apache-2.0
// Two sites; one asks for what its allocator, slow_malloc.c, takes 100 us to make and to free.
//
// run: -

#include "known.h"

enum { kBlocks = 50 };
static void *blocks[kBlocks];

OPAQUE static void slow_site(void) {
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(777);
}
OPAQUE static void quick_site(void) {
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(100);
}
OPAQUE static void free_all(void) {
  for (int i = 0; i < kBlocks; ++i) free(blocks[i]);
}

OPAQUE static void free_nothing(void) {
  for (int i = 0; i < 1000; ++i) free(NULL);
}

int main(void) {
  slow_site();
  free_all();
  quick_site();
  free_all();
  free_nothing();
  return 0;
}
