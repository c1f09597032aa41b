// SPDX-License-Identifier: Apache-2.0
// An executable with an allocator inside: it comes before any preloaded one, so
// the recorder sees nothing of it and must say so (F26).
//
// run: inside exit=42
// counter: off
// stderr: ignored

#include <stddef.h>
#include <string.h>
#include <unistd.h>

static char heap[1 << 24];
static size_t used;
static int calls;

void *malloc(size_t size) {
  size_t at = used;
  used += (size + 15) / 16 * 16;
  ++calls;
  return used < sizeof heap ? heap + at : NULL;
}
void free(void *p) { (void)p; }
void *calloc(size_t n, size_t size) { return malloc(n * size); }
void *realloc(void *p, size_t size) {
  void *q = malloc(size);
  if (p && q) memmove(q, p, size);
  return q;
}

int main(void) {
  for (int i = 0; i < 1000; ++i) *(volatile char *)malloc(40) = 1;
  if (calls < 1000) return 1;
  return write(1, "own malloc\n", 11) == 11 ? 42 : 1;
}
