// SPDX-License-Identifier: Apache-2.0
// A peak that is known to the byte, and who held it then.
//
// expect: totals peak_bytes=70000000 live_bytes=10000000 allocations=107
// expect: base_load peak_bytes=10000000 live_bytes=10000000
// expect: short_flood peak_bytes=60000000 live_bytes=0
// expect: after_the_flood peak_bytes=0 live_bytes=0

#include "known.h"

OPAQUE static void base_load(void) {
  for (int i = 0; i < 100; ++i) *(volatile char *)malloc(100000) = 1;
}

OPAQUE static void short_flood(void) {
  void *blocks[6];
  for (int i = 0; i < 6; ++i) blocks[i] = malloc(10000000), *(volatile char *)blocks[i] = 1;
  for (int i = 0; i < 6; ++i) free(blocks[i]);
}

OPAQUE static void after_the_flood(void) {
  volatile char *p = malloc(50000000);
  p[0] = 1;
  free((void *)p);
}

int main(void) {
  base_load();
  short_flood();
  after_the_flood();
  say("done\n");
  return 0;
}
