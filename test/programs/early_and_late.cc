// SPDX-License-Identifier: Apache-2.0
// Before any constructor, in constructors, at exit and after the last static
// destructor: an allocation counts whenever it happens (F1, F15).
//
// build: -Wl,-rpath,$ORIGIN -L. -learly
// expect: in_preinit allocations=10
// expect: in_library_constructor allocations=10
// expect: in_library_destructor allocations=10
// expect: in_constructor allocations=10
// expect: in_atexit allocations=10
// expect: in_static_destructor allocations=10
// expect: in_fini allocations=10
// stack: in_atexit ... exit main ...

#include "known.h"

#define ALLOCATES(name)                                   \
  OPAQUE static void name() {                             \
    for (int i = 0; i < 10; ++i) {                        \
      auto *p = static_cast<volatile char *>(malloc(40)); \
      p[0] = 1;                                           \
    }                                                     \
  }
ALLOCATES(in_preinit)
ALLOCATES(in_constructor)
ALLOCATES(in_atexit)
ALLOCATES(in_static_destructor)
ALLOCATES(in_fini)

extern "C" void use_early();

__attribute__((section(".preinit_array"), used)) static void (*preinit)() = in_preinit;
__attribute__((constructor(101))) static void first() { in_constructor(); }
__attribute__((destructor(101))) static void last() { in_fini(); }
struct Static {
  ~Static() { in_static_destructor(); }
} object;

int main() {
  use_early();
  atexit(in_atexit);
  say("done\n");
  exit(0);  // By name, so that the recorder's own exit is on the stack: it must not be shown.
}
