// SPDX-License-Identifier: Apache-2.0
// One of the two libraries of dlclose_reuse.c.
//
// build: -shared -fPIC -o libturn_a.so

#include <stdlib.h>

__attribute__((noipa)) void allocate_in_a(void) {
  for (int i = 0; i < 10; ++i) {
    volatile char *p = malloc(40);
    p[0] = 1;
  }
}

void turn(void) {
  allocate_in_a();
  __asm__ volatile("");
}
