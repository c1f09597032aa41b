// SPDX-License-Identifier: Apache-2.0
// Found by bare name through the RUNPATH of whoever calls dlopen.
//
// build: -shared -fPIC -o plugins/libnamed.so

#include <stdlib.h>

__attribute__((noipa)) void from_named(void) {
  for (int i = 0; i < 10; ++i) {
    volatile char *p = malloc(40);
    p[0] = 1;
  }
}
