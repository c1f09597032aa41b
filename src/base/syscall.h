// SPDX-License-Identifier: Apache-2.0
// System calls made directly, for the code that runs inside the target. The
// libc wrappers would set errno, be cancellation points and go through symbols
// that the program may have replaced. A failure is a negative errno value, as
// the kernel returns it.

#pragma once

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"

namespace malloscope::sys {

#if defined(__x86_64__)
MSCOPE_FAST long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
                      long f = 0) {
  long result;
  register long r10 asm("r10") = d;
  register long r8 asm("r8") = e;
  register long r9 asm("r9") = f;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
#else
#error "system calls for this CPU are to be added here"
#endif

// Set in a process that has given up system calls (seccomp): one that it does not allow would kill
// it, so what follows fails without asking the kernel. call() itself always asks.
inline constinit std::atomic<bool> sandboxed = false;
inline bool is_sandboxed() { return sandboxed.load(std::memory_order_relaxed); }

template <typename T>
long arg(T* pointer) {
  return reinterpret_cast<long>(pointer);
}

inline bool failed(long result) { return static_cast<unsigned long>(result) > -4096UL; }

// nullptr on failure.
inline void* map(size_t bytes, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1,
                 int protection = PROT_READ | PROT_WRITE) {
  if (is_sandboxed()) return nullptr;
  long result = call(SYS_mmap, 0, static_cast<long>(bytes), protection, flags, fd, 0);
  return failed(result) ? nullptr : reinterpret_cast<void*>(result);
}

inline void unmap(void* memory, size_t bytes) {
  if (!is_sandboxed()) call(SYS_munmap, arg(memory), static_cast<long>(bytes));
}

inline long advise(void* memory, size_t bytes, int advice) {
  return call(SYS_madvise, arg(memory), static_cast<long>(bytes), advice);
}

// -1 if nobody may be asked.
inline int pid() { return is_sandboxed() ? -1 : static_cast<int>(call(SYS_getpid)); }
inline int tid() { return is_sandboxed() ? -1 : static_cast<int>(call(SYS_gettid)); }

inline int open(const char* path, int flags) {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, arg(path), flags | O_CLOEXEC, 0));
}

inline long read(int fd, void* buffer, size_t bytes) {
  return call(SYS_read, fd, arg(buffer), static_cast<long>(bytes));
}

inline void close(int fd) { call(SYS_close, fd); }

inline long futex_wait(const void* word, uint32_t value, const timespec* timeout) {
  if (is_sandboxed()) return -1;
  return call(SYS_futex, arg(word), FUTEX_WAIT, static_cast<long>(value), arg(timeout));
}

}  // namespace malloscope::sys
