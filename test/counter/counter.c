// SPDX-License-Identifier: Apache-2.0
// An independent count of what the recorder should have seen.
//
// Preloaded behind the recorder (LD_PRELOAD=recorder:counter) this library is
// the "next definition" that the recorder forwards to, so both see the very
// same calls of the very same run. It shares no code with the recorder, and
// does everything the simplest way: glibc's own entry points underneath, one
// table of live blocks, and totals that live in a file mapped from
// COUNTER_DIR, so that they survive any end of the process.
//
// The definitions are those of `malloscope report --json`. A process image is a
// file PID.N; a forked child is noticed by a page that the kernel wipes, and
// starts with an empty account.
//
// Slots of the table are claimed by compare-and-swap and an address has one
// owner at a time, so threads and signal handlers need no lock.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void *__libc_valloc(size_t);
void *__libc_pvalloc(size_t);
void __libc_free(void *);

// Read by test/counter.py: keep the order.
struct Totals {
  char program[64];
  _Atomic uint64_t forked;
  _Atomic uint64_t malloc, calloc, realloc, reallocarray, memalign, aligned_alloc, posix_memalign;
  _Atomic uint64_t valloc, pvalloc, free;
  _Atomic uint64_t allocations, reallocations, frees, inherited_frees, allocated_bytes, freed_bytes;
  _Atomic uint64_t live_bytes, live_blocks, peak_bytes, temporary, failed, unmatched_frees;
};

struct Slot {
  _Atomic uintptr_t address;
  uint64_t size, serial;
};

// Everything about one image; the page it is in reads as zero after a fork.
struct Image {
  struct Totals *totals;
  struct Slot *slots;
  _Atomic int begun;
};

// What the aligned operator new that is under way was asked for; 0 if there is none.
static __thread __attribute__((tls_model("initial-exec"))) size_t asked_of_new;

enum { kSlotBits = 25 };
static const uintptr_t kDead = 1;  // A slot that was in use: searches go on behind it.

static struct Image *image;
static int known_before;  // Survives a fork, so says that there was one.
static _Atomic uint64_t serials;
static __thread uint64_t last_serial __attribute__((tls_model("initial-exec")));

static void *map(size_t bytes, int flags, int fd) {
  void *p = (void *)syscall(SYS_mmap, NULL, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  return p == MAP_FAILED ? NULL : p;
}

// The value of a variable in the environment that the process began with; libc
// may not have looked at it yet when the first block is asked for.
static int variable(const char *name, char *value, size_t room) {
  static char all[1 << 16];
  int fd = (int)syscall(SYS_open, "/proc/self/environ", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  size_t length = 0;
  for (ssize_t n;
       length < sizeof all && (n = syscall(SYS_read, fd, all + length, sizeof all - length)) > 0;)
    length += (size_t)n;
  syscall(SYS_close, fd);
  for (char *at = all; at < all + length; at += strlen(at) + 1)
    if (strncmp(at, name, strlen(name)) == 0 && strlen(at) < room) {
      strcpy(value, at + strlen(name));
      return 1;
    }
  return 0;
}

static char *append(char *to, const char *text) { return stpcpy(to, text); }
static char *append_number(char *to, unsigned long n) {
  char digits[24];
  int count = 0;
  do digits[count++] = (char)('0' + n % 10);
  while (n /= 10);
  while (count) *to++ = digits[--count];
  *to = 0;
  return to;
}

static struct Totals *open_totals(void) {
  char path[4096 + 64];
  static char folder[4096];
  if (!folder[0] && !variable("COUNTER_DIR=", folder, sizeof folder)) return NULL;
  int fd = -1;
  for (unsigned long n = 0; n < 100000; ++n) {
    char *end =
        append_number(append(append(path, folder), "/"), (unsigned long)syscall(SYS_getpid));
    append_number(append(end, "."), n);
    fd = (int)syscall(SYS_open, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) break;
  }
  if (fd < 0) return NULL;
  syscall(SYS_ftruncate, fd, 4096);
  struct Totals *totals = map(4096, MAP_SHARED, fd);
  syscall(SYS_close, fd);
  if (!totals) return NULL;
  char exe[1024];
  long n = syscall(SYS_readlink, "/proc/self/exe", exe, sizeof exe - 1);
  exe[n < 0 ? 0 : n] = 0;
  char *slash = strrchr(exe, '/');
  strncpy(totals->program, slash ? slash + 1 : exe, sizeof totals->program - 1);
  return totals;
}

static struct Image *begin(void) {
  int saved = errno;
  if (!image) {
    image = map(4096, MAP_PRIVATE | MAP_ANONYMOUS, -1);
    if (!image || syscall(SYS_madvise, image, 4096, MADV_WIPEONFORK) != 0) _exit(96);
  }
  // Threads of one image race here only if the first call of all was not the
  // main thread's, which the loader rules out; a child of fork has one thread.
  if (!atomic_exchange(&image->begun, 1)) {
    image->slots =
        map(sizeof(struct Slot) << kSlotBits, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
    struct Totals *totals = image->slots ? open_totals() : NULL;
    if (totals) totals->forked = (uint64_t)known_before;
    known_before = 1;
    image->totals = totals;
  }
  errno = saved;
  return image;
}

static inline struct Totals *counting(void) {
  struct Image *i = image;
  if (!i || !i->begun) i = begin();
  return i->totals;
}

static struct Slot *first_slot(uintptr_t address) {
  return &image->slots[(address >> 4) * 0x9e3779b97f4a7c15u >> (64 - kSlotBits)];
}
static struct Slot *next_slot(struct Slot *s) {
  return ++s == image->slots + ((size_t)1 << kSlotBits) ? image->slots : s;
}

static void born(struct Totals *t, void *p, size_t size, uint64_t serial) {
  for (struct Slot *s = first_slot((uintptr_t)p);; s = next_slot(s)) {
    uintptr_t seen = s->address;
    if (seen > kDead || !atomic_compare_exchange_strong(&s->address, &seen, (uintptr_t)p)) continue;
    s->size = size;
    s->serial = serial;
    break;
  }
  ++t->live_blocks;
  uint64_t live = t->live_bytes += size, peak = t->peak_bytes;
  while (live > peak && !atomic_compare_exchange_weak(&t->peak_bytes, &peak, live)) {
  }
}

// Takes the block out of the table; 0 if it is not this image's.
static int died(struct Totals *t, void *p, struct Slot *was) {
  for (struct Slot *s = first_slot((uintptr_t)p); s->address; s = next_slot(s)) {
    if (s->address != (uintptr_t)p) continue;
    was->size = s->size;
    was->serial = s->serial;
    s->address = kDead;
    --t->live_blocks;
    t->live_bytes -= was->size;
    return 1;
  }
  return 0;
}

static void *allocated(struct Totals *t, void *p, size_t size) {
  if (!t) return p;
  if (!p) {
    ++t->failed;
    return p;
  }
  ++t->allocations;
  t->allocated_bytes += size;
  last_serial = ++serials;
  born(t, p, size, last_serial);
  return p;
}

#define CALL(name)               \
  struct Totals *t = counting(); \
  if (t) ++t->name

void *malloc(size_t size) {
  CALL(malloc);
  return allocated(t, __libc_malloc(size), size);
}

void *calloc(size_t n, size_t size) {
  CALL(calloc);
  return allocated(t, __libc_calloc(n, size), n * size);
}

void *memalign(size_t alignment, size_t size) {
  CALL(memalign);
  return allocated(t, __libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size) {
  CALL(aligned_alloc);
  size_t asked = asked_of_new, counted = size;
  if (asked && alignment && size == (asked + alignment - 1) / alignment * alignment)
    counted = asked;
  return allocated(t, __libc_memalign(alignment, size), counted);
}

// libstdc++'s own do the work, and round up what they ask aligned_alloc for.
#define ALIGNED_NEW(symbol, PARAMETERS, ...)                          \
  void *symbol PARAMETERS {                                           \
    static void *(*_Atomic next)PARAMETERS;                           \
    if (!next) next = (void *(*)PARAMETERS)dlsym(RTLD_NEXT, #symbol); \
    asked_of_new = size ? size : 1;                                   \
    void *block = next(__VA_ARGS__);                                  \
    asked_of_new = 0;                                                 \
    return block;                                                     \
  }
ALIGNED_NEW(_ZnwmSt11align_val_t, (size_t size, size_t alignment), size, alignment)
ALIGNED_NEW(_ZnamSt11align_val_t, (size_t size, size_t alignment), size, alignment)
ALIGNED_NEW(_ZnwmSt11align_val_tRKSt9nothrow_t,
            (size_t size, size_t alignment, const void *nothrow), size, alignment, nothrow)
ALIGNED_NEW(_ZnamSt11align_val_tRKSt9nothrow_t,
            (size_t size, size_t alignment, const void *nothrow), size, alignment, nothrow)

int posix_memalign(void **result, size_t alignment, size_t size) {
  CALL(posix_memalign);
  int saved = errno;
  if (alignment % sizeof(void *) || alignment == 0 || (alignment & (alignment - 1))) {
    if (t) ++t->failed;
    return EINVAL;
  }
  void *p = allocated(t, __libc_memalign(alignment, size), size);
  errno = saved;
  if (!p) return ENOMEM;
  *result = p;
  return 0;
}

void *valloc(size_t size) {
  CALL(valloc);
  return allocated(t, __libc_valloc(size), size);
}

void *pvalloc(size_t size) {
  CALL(pvalloc);
  return allocated(t, __libc_pvalloc(size), size);
}

static void *reallocate(struct Totals *t, void *old, size_t size) {
  if (!old) return allocated(t, __libc_realloc(NULL, size), size);
  struct Slot was;
  int mine = t && died(t, old, &was);
  void *p = __libc_realloc(old, size);
  if (!t) return p;
  if (!p && size == 0) {  // A free.
    if (mine) {
      ++t->frees;
      t->freed_bytes += was.size;
      if (was.serial == last_serial) ++t->temporary;
    } else {
      ++*(t->forked ? &t->inherited_frees : &t->unmatched_frees);
    }
  } else if (!p) {
    ++t->failed;
    if (mine) born(t, old, was.size, was.serial);
  } else if (!mine) {  // Inherited: this image's account begins with it now.
    allocated(t, p, size);
  } else {
    ++t->reallocations;
    if (size > was.size)
      t->allocated_bytes += size - was.size;
    else
      t->freed_bytes += was.size - size;
    last_serial = 0;
    born(t, p, size, ++serials);
  }
  return p;
}

void *realloc(void *old, size_t size) {
  CALL(realloc);
  return reallocate(t, old, size);
}

void *reallocarray(void *old, size_t n, size_t size) {
  CALL(reallocarray);
  size_t bytes;
  if (__builtin_mul_overflow(n, size, &bytes)) {
    if (t) ++t->failed;
    errno = ENOMEM;
    return NULL;
  }
  return reallocate(t, old, bytes);
}

void free(void *p) {
  CALL(free);
  struct Slot was;
  if (p && t) {
    if (died(t, p, &was)) {
      ++t->frees;
      t->freed_bytes += was.size;
      if (was.serial == last_serial) ++t->temporary;
    } else {
      ++*(t->forked ? &t->inherited_frees : &t->unmatched_frees);
    }
  }
  __libc_free(p);
}
