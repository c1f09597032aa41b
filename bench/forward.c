// SPDX-License-Identifier: Apache-2.0
// The floor: hooks that do nothing but pass the call on. What a preloaded
// profiler costs beyond this, it costs by its own doing.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

#define NEXT(type, name, parameters, arguments)           \
  type name parameters {                                  \
    static type(*next) parameters;                        \
    if (!next) *(void **)&next = dlsym(RTLD_NEXT, #name); \
    return next arguments;                                \
  }

NEXT(void *, malloc, (size_t n), (n))
NEXT(void *, calloc, (size_t n, size_t size), (n, size))
NEXT(void *, realloc, (void *p, size_t n), (p, n))
NEXT(void *, memalign, (size_t a, size_t n), (a, n))
NEXT(void *, aligned_alloc, (size_t a, size_t n), (a, n))
NEXT(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
NEXT(void, free, (void *p), (p))
