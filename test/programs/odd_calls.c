// SPDX-License-Identifier: Apache-2.0
// Calls that few programs make: sizes of 0 and of more than there is, reallocs to nothing,
// alignments that are no powers of two and sizes that are no multiples of them; and one large
// block.
#include <malloc.h>
#include <stdlib.h>

int main(void) {
  volatile size_t too_much = (size_t)1 << 60;
  for (int i = 0; i < 10; ++i) {
    free(malloc(too_much));
    free(calloc(too_much, 2));
    free(realloc(NULL, too_much));
  }
  free(malloc(0));
  free(calloc(0, 5));
  free(calloc(5, 0));
  free(realloc(malloc(10), 0));
  free(realloc(NULL, 0));
  void* block = malloc(100);
  void* moved = realloc(block, too_much);
  free(moved ? moved : block);
  for (size_t alignment = 16; alignment <= 65536; alignment *= 2)
    for (size_t size = 1; size < 5000; size += 777) free(aligned_alloc(alignment, size));
  if (posix_memalign(&block, 3, 10) == 0) free(block);
  free(memalign(0, 10));
  free(memalign(24, 100));
  free(valloc(1));
  free(pvalloc(1));
  free(aligned_alloc(1 << 21, 1));
  block = malloc(200 << 20);
  *(volatile char*)block = 1;
  free(block);
  free(NULL);
}
