// SPDX-License-Identifier: Apache-2.0
// A library that allocates while it is loaded and while it is left.
//
// build: -shared -fPIC -o libearly.so

#include <stdlib.h>

__attribute__((noipa)) static void in_library_constructor(void) {
  for (int i = 0; i < 10; ++i) *(volatile char *)malloc(40) = 1;
}

__attribute__((noipa)) static void in_library_destructor(void) {
  for (int i = 0; i < 10; ++i) *(volatile char *)malloc(40) = 1;
}

__attribute__((constructor)) static void start(void) {
  in_library_constructor();
  __asm__ volatile("");
}

__attribute__((destructor)) static void end(void) {
  in_library_destructor();
  __asm__ volatile("");
}

void use_early(void) {}
