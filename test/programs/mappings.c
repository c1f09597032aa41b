// SPDX-License-Identifier: Apache-2.0
// mmap and its like are their own kind of call and no part of the heap.
//
// expect: calls mmap=11 munmap=11 mremap=1 brk=1 sbrk=3
// expect: totals allocations=0 live_bytes=0
// counter: off

#include <sys/mman.h>

#include "known.h"

int main(void) {
  for (int i = 0; i < 10; ++i) {
    void *p = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED && munmap(p, 8192) == 0);
  }
  void *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(int *)p = 42;
  p = mremap(p, 8192, 65536, MREMAP_MAYMOVE);
  MUST(p != MAP_FAILED && *(int *)p == 42 && munmap(p, 65536) == 0);
  char *here = sbrk(0);
  MUST(sbrk(4096) == here);
  MUST(brk(here) == 0 && sbrk(0) == here);
  say("mapped\n");
  return 0;
}
