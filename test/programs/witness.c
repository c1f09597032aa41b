// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC -o libwitness.so
// libc's allocator, to be preloaded: writes every aligned call to the file $WITNESS, as
// "alignment size".

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *__libc_memalign(size_t alignment, size_t size);
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void __libc_free(void *block);

void *malloc(size_t size) { return __libc_malloc(size); }
void *calloc(size_t count, size_t size) { return __libc_calloc(count, size); }
void *realloc(void *block, size_t size) { return __libc_realloc(block, size); }
void free(void *block) { __libc_free(block); }

static void testify(size_t alignment, size_t size) {
  char line[64];
  const char *path = getenv("WITNESS");
  int length = snprintf(line, sizeof line, "%zu %zu\n", alignment, size);
  int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;
  if (fd < 0 || write(fd, line, (size_t)length) != length) abort();
  close(fd);
}

void *memalign(size_t alignment, size_t size) {
  testify(alignment, size);
  return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
  void *made = memalign(alignment, size);
  if (!made) return ENOMEM;
  *block = made;
  return 0;
}
