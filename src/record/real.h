// SPDX-License-Identifier: Apache-2.0
// The functions that would have been called without us: the next definition of
// each name after the recorder's own.

#pragma once

#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>

namespace malloscope::record {

// Filled in by the first call of any of them; before that each entry is a stub
// that does so and then calls the real one, so that the hooks need no check.
struct Real {
  void* (*malloc)(size_t);
  void* (*calloc)(size_t, size_t);
  void* (*realloc)(void*, size_t);
  void* (*reallocarray)(void*, size_t, size_t);
  void (*free)(void*);
  void (*cfree)(void*);
  void (*free_sized)(void*, size_t);
  void (*free_aligned_sized)(void*, size_t, size_t);
  void* (*memalign)(size_t, size_t);
  void* (*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void**, size_t, size_t);
  void* (*valloc)(size_t);
  void* (*pvalloc)(size_t);
  size_t (*malloc_usable_size)(void*);

  void* (*mmap)(void*, size_t, int, int, int, off_t);
  int (*munmap)(void*, size_t);
  void* (*mremap)(void*, size_t, size_t, int, void*);
  int (*mprotect)(void*, size_t, int);
  int (*brk)(void*);
  void* (*sbrk)(intptr_t);

  int (*dlclose)(void*);
  pid_t (*fork)();
  int (*execve)(const char*, char* const*, char* const*);
  int (*execvpe)(const char*, char* const*, char* const*);
  int (*fexecve)(int, char* const*, char* const*);
  int (*execveat)(int, const char*, char* const*, char* const*, int);
  int (*posix_spawn)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                     const posix_spawnattr_t*, char* const*, char* const*);
  int (*posix_spawnp)(pid_t*, const char*, const posix_spawn_file_actions_t*,
                      const posix_spawnattr_t*, char* const*, char* const*);
  int (*prctl)(int, unsigned long, unsigned long, unsigned long, unsigned long);
  int (*pthread_setname_np)(unsigned long, const char*);
  // The detailed recorder's alone.
  int (*pthread_create)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  int (*sigaction)(int, const struct sigaction*, struct sigaction*);
  void (*(*signal)(int, void (*)(int)))(int);
  void (*(*__sysv_signal)(int, void (*)(int)))(int);
  void (*(*sigset)(int, void (*)(int)))(int);
  int (*sigprocmask)(int, const sigset_t*, sigset_t*);
  int (*pthread_sigmask)(int, const sigset_t*, sigset_t*);
};
extern constinit Real real;

// The function `syscall`; hooks_syscall.cc jumps there, so it has a name of C's.
using Syscall = long (*)(long, long, long, long, long, long, long);
extern "C" [[gnu::visibility("hidden")]] Syscall mscope_next_syscall;
// Part of resolve().
void resolve_syscall();

// The global operators new and delete. libstdc++ may come with a plug-in long
// after the program began, or leave with it, so these are looked up when first
// needed and forgotten after a dlclose.
enum class Operator {
  kNew,
  kNewArray,
  kNewNothrow,
  kNewArrayNothrow,
  kNewAligned,
  kNewArrayAligned,
  kNewAlignedNothrow,
  kNewArrayAlignedNothrow,
  kDelete,
  kDeleteArray,
  kDeleteSized,
  kDeleteArraySized,
  kDeleteNothrow,
  kDeleteArrayNothrow,
  kDeleteAligned,
  kDeleteArrayAligned,
  kDeleteSizedAligned,
  kDeleteArraySizedAligned,
  kDeleteAlignedNothrow,
  kDeleteArrayAlignedNothrow,
  kCount,
};

// nullptr if no loaded module defines it.
void* real_operator(Operator which);
void forget_operators();

// The next definition of any other name, or nullptr.
void* next_definition(const char* name);

void resolve();

// The path by which this library was loaded; empty if it cannot be told.
const char* own_path();

}  // namespace malloscope::record
