// SPDX-License-Identifier: Apache-2.0
// An operator new and delete that allocate and free for purposes of their own, as a library that is
// linked: ODD says in which way.
//
// build: -shared -fPIC -o libodd.so

#include <stdlib.h>

#include <new>

static const int way = getenv("ODD") ? atoi(getenv("ODD")) : 0;
static void *volatile seen;
static void *see(void *block) { return seen = block; }

void *operator new(size_t size) {
  if (way == 0) {
    free(see(malloc(8)));
    return see(malloc(size));
  }
  if (way == 1) return see(realloc(see(malloc(8)), size));
  if (way == 2) return static_cast<char *>(see(malloc(size + 16))) + 16;
  if (way == 3) {
    void *block = see(malloc(size));
    free(see(malloc(40)));
    return block;
  }
  void *block = nullptr;
  for (size_t i = 1; i < 4; ++i) {
    free(block);
    block = see(malloc(size * i));
  }
  return block;
}

void operator delete(void *block) noexcept {
  if (way == 2) return free(static_cast<char *>(block) - 16);
  free(see(malloc(9)));
  free(block);
}
void operator delete(void *block, size_t) noexcept { operator delete(block); }
