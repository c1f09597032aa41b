// SPDX-License-Identifier: Apache-2.0
// A C program loads a C++ plug-in into a scope of its own: libstdc++ is not
// among the libraries that RTLD_NEXT looks through.
//
// build: -ldl
// expect: use_new allocations=100 allocated_bytes=20000 temporary=100

#include <dlfcn.h>
#include <stdio.h>

#include "known.h"

int main(int argc, char **argv) {
  (void)argc;
  char path[512], *slash = strrchr(argv[0], '/');
  if (slash) *slash = 0;
  snprintf(path, sizeof path, "%s/libplugin_cxx.so", argv[0]);
  for (int i = 0; i < 1; ++i) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    MUST(library);
    int (*plugin)(void);
    *(void **)&plugin = dlsym(library, "plugin");
    tell("plug-in", plugin());
    dlclose(library);
  }
  return 0;
}
