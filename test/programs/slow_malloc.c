// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC -o libslow_malloc.so
// An allocator to be preloaded: takes 100 us for a block of 777 bytes and for its free, and
// nothing to speak of for others. Gives no memory back, so it does not mind what it is asked to
// free.

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

static _Alignas(16) char arena[64 << 20];
static size_t used;

static void take_time(void) {
  struct timespec from, now;
  clock_gettime(CLOCK_MONOTONIC, &from);
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((now.tv_sec - from.tv_sec) * 1000000000L + now.tv_nsec - from.tv_nsec < 100000);
}

void *malloc(size_t size) {
  size_t at = __atomic_fetch_add(&used, (size + 31) & ~(size_t)15, __ATOMIC_RELAXED);
  if (at + size + 16 > sizeof arena) return NULL;
  *(size_t *)(arena + at) = size;
  if (size == 777) take_time();
  return arena + at + 16;
}

static size_t size_of(void *block) { return *(size_t *)((char *)block - 16); }

void free(void *block) {
  if (block && size_of(block) == 777) take_time();
}

void *calloc(size_t count, size_t size) { return malloc(count * size); }

void *realloc(void *block, size_t size) {
  char *fresh = malloc(size);
  if (fresh && block) memcpy(fresh, block, size < size_of(block) ? size : size_of(block));
  return fresh;
}
