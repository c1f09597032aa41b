// SPDX-License-Identifier: Apache-2.0
// Every C entry point: results, alignment, contents and errno are libc's own (F29, F38).
//
// expect: calls malloc=5 calloc=2 realloc=4 reallocarray=2 memalign=1 aligned_alloc=1
// expect: calls posix_memalign=2 valloc=1 pvalloc=1 free=11
// expect: totals allocations=11 reallocations=2 frees=11 live_blocks=0 live_bytes=0 failed=5
// expect: totals unmatched_frees=0 order_violations=0 inherited_frees=0
// expect: totals allocated_bytes=9700 freed_bytes=9700

#include <malloc.h>
#include <stdint.h>

#include "known.h"

static int aligned(void *p, uintptr_t to) { return p && (uintptr_t)p % to == 0; }

int main(void) {
  volatile size_t huge = SIZE_MAX / 2 + 1;  // More than PTRDIFF_MAX.
  errno = 77;
  char *a = malloc(100);  // +100
  MUST(aligned(a, 16) && errno == 77);
  MUST(malloc_usable_size(a) >= 100);
  char *zero = malloc(0);
  MUST(zero && errno == 77);
  free(zero);
  MUST(errno == 77);
  free(NULL);
  MUST(errno == 77);
  MUST(malloc(huge) == NULL && errno == ENOMEM);

  errno = 78;
  char *c = calloc(10, 30);  // +300
  MUST(c && errno == 78);
  for (int i = 0; i < 300; ++i) MUST(c[i] == 0);
  MUST(calloc(huge, 16) == NULL && errno == ENOMEM);

  errno = 79;
  strcpy(a, "contents move along");
  a = realloc(a, 1000);  // +900
  MUST(a && strcmp(a, "contents move along") == 0 && errno == 79);
  MUST(realloc(a, huge) == NULL && errno == ENOMEM && strcmp(a, "contents move along") == 0);
  errno = 80;
  char *fresh = realloc(NULL, 500);  // +500, an allocation
  MUST(fresh && errno == 80);
  MUST(realloc(fresh, 0) == NULL);  // A free in glibc.

  errno = 81;
  c = reallocarray(c, 20, 30);  // +300
  MUST(c && errno == 81);
  MUST(reallocarray(c, huge, 16) == NULL && errno == ENOMEM);

  errno = 82;
  void *m = memalign(64, 200);         // +200
  void *al = aligned_alloc(256, 512);  // +512
  void *pm = NULL;
  MUST(aligned(m, 64) && aligned(al, 256));
  MUST(posix_memalign(&pm, 4096, 88) == 0 && aligned(pm, 4096));  // +88
  void *untouched = (void *)1;
  MUST(posix_memalign(&untouched, 3, 88) == EINVAL && untouched == (void *)1);
  void *v = valloc(2000);    // +2000
  void *pv = pvalloc(4800);  // +4800, of which libc makes two pages
  MUST(aligned(v, 4096) && aligned(pv, 4096) && errno == 82);
  free(m), free(al), free(pm), free(v), free(pv), free(a), free(c);
  MUST(errno == 82);

  free(malloc(0)), free(malloc(0));
  say("api ok\n");
  return 0;
}
