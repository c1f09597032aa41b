// SPDX-License-Identifier: Apache-2.0
// dlopen of a bare name looks in the caller's own RUNPATH; a dlopen that were
// forwarded would look in the forwarder's.
//
// build: -ldl -Wl,--enable-new-dtags,-rpath,$ORIGIN/plugins
// expect: from_named allocations=10 allocated_bytes=400

#include <dlfcn.h>

#include "known.h"

int main(void) {
  void *library = dlopen("libnamed.so", RTLD_NOW);
  MUST(library);
  void (*from_named)(void);
  *(void **)&from_named = dlsym(library, "from_named");
  from_named();
  say("found\n");
  return 0;
}
