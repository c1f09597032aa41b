// SPDX-License-Identifier: Apache-2.0
// Two libraries take turns at the same address. Each call is blamed on the one
// that made it (F24).
//
// build: -ldl
// expect: allocate_in_a allocations=500 allocated_bytes=20000
// expect: allocate_in_b allocations=500 allocated_bytes=20000

#include <dlfcn.h>
#include <stdio.h>

#include "known.h"

static void *addresses[2];

static void visit(const char *folder, const char *name, int which) {
  char path[512];
  snprintf(path, sizeof path, "%s/libturn_%s.so", folder, name);
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  MUST(library);
  void (*turn)(void);
  *(void **)&turn = dlsym(library, "turn");
  MUST(turn);
  addresses[which] = (void *)turn;
  turn();
  dlclose(library);
}

int main(int argc, char **argv) {
  char *slash = strrchr(argv[0], '/');
  if (slash) *slash = 0;
  int rounds = argc > 1 ? atoi(argv[1]) : 50;
  for (int i = 0; i < rounds; ++i) visit(argv[0], "a", 0), visit(argv[0], "b", 1);
  tell("same address", addresses[0] == addresses[1]);
  return 0;
}
