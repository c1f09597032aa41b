// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC -o libbroken.so
// An allocator that never reuses anything, and from its thousandth call on does wrong what BROKEN
// says: overlap, twice, misaligned, dirty, forgets, crash, hang, exit, prints, forks. Else it
// works; with BROKEN=nothing, 0 bytes are no block from the first call on, which is allowed.
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char* next;
static char* end;
static long calls;
static const char* fault;

static int now(const char* what) {
  if (!fault) {
    const char* chosen = getenv("BROKEN");
    fault = chosen ? chosen : "";
  }
  return (calls > 1000 || strcmp(what, "nothing") == 0) && strcmp(fault, what) == 0;
}

void* memalign(size_t alignment, size_t size) {
  if (size == 0 && now("nothing")) return 0;
  pthread_mutex_lock(&lock);
  ++calls;
  if (alignment < 16) alignment = 16;
  if (!next) {
    size_t room = (size_t)64 << 30;
    next =
        mmap(0, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    end = next + room;
  }
  if (now("crash")) *(volatile int*)8 = 1;
  if (now("exit")) _exit(3);
  static int once;
  if (now("prints") && !once++) (void)!write(1, "noise\n", 6);
  if (now("forks") && !once++ && fork() == 0) {
    setsid();
    sleep(30);
    _exit(0);
  }
  while (now("hang")) {
  }
  char* block = (char*)(((uintptr_t)next + 16 + alignment - 1) & ~(uintptr_t)(alignment - 1));
  if (size > (size_t)(end - block)) {
    pthread_mutex_unlock(&lock);
    errno = ENOMEM;
    return 0;
  }
  ((size_t*)block)[-1] = size;
  next = block + size;
  if (now("overlap") && size > 32) next -= 24;
  static char* last;
  static size_t last_size;
  if (now("twice") && last && size == last_size) block = last;
  last = block;
  last_size = size;
  if (now("dirty")) memset(block, 7, size);
  pthread_mutex_unlock(&lock);
  return now("misaligned") ? block + 4 : block;
}
void* malloc(size_t size) { return memalign(16, size); }
void* aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }
int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = memalign(alignment, size);
  return *block || size == 0 ? 0 : ENOMEM;
}
void* calloc(size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes)) return 0;
  void* block = memalign(16, bytes);
  return !block || now("dirty") ? block : memset(block, 0, count * size);
}
void free(void* block) { (void)block; }
void* realloc(void* block, size_t size) {
  void* fresh = malloc(size);
  if (block && fresh && !now("forgets")) {
    size_t old = ((size_t*)block)[-1];
    memcpy(fresh, block, old < size ? old : size);
  }
  return fresh;
}
