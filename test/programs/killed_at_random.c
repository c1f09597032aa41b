// SPDX-License-Identifier: Apache-2.0
// Tells, in a file that survives any end, which calls it has begun and which
// have returned; killed at any instant, the trace must lie between (F16).
//
// argv: FILE THREADS. Per thread: mallocs begun, returned, frees begun, returned.
//
// run: -

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>

#include "known.h"

struct Truth {
  volatile uint64_t mallocs_begun, mallocs_returned, frees_begun, frees_returned, rest[4];
};
static struct Truth *truth;

#define ORDER __asm__ volatile("" ::: "memory")

OPAQUE static void *count_on(void *self) {
  struct Truth *mine = &truth[(intptr_t)self];
  void *blocks[64] = {0};
  for (uint64_t r = 88172645463325252u + (uint64_t)(intptr_t)self;;) {
    r ^= r << 13, r ^= r >> 7, r ^= r << 17;
    void **block = &blocks[r % 64];
    if (*block) {
      ++mine->frees_begun;
      ORDER;
      free(*block);
      ORDER;
      ++mine->frees_returned;
      *block = NULL;
    } else {
      ++mine->mallocs_begun;
      ORDER;
      *block = malloc(16 + r % 512);
      ORDER;
      ++mine->mallocs_returned;
    }
  }
  return NULL;
}

int main(int argc, char **argv) {
  (void)argc;
  int fd = open(argv[1], O_RDWR | O_CREAT, 0600);
  intptr_t threads = atol(argv[2]);
  MUST(ftruncate(fd, 4096) == 0);
  truth = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  pthread_t unused;
  for (intptr_t i = 1; i < threads; ++i) pthread_create(&unused, NULL, count_on, (void *)i);
  say("running\n");
  count_on(NULL);
  return 0;
}
