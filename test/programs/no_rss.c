// SPDX-License-Identifier: Apache-2.0
// build: -shared -fPIC -o libno_rss.so
// To be preloaded: as on a kernel that tells nothing of a process's memory, /proc/PID/status is
// empty.
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>

static int open_it(const char *path, int flags, mode_t mode) {
  int pid = 0, end = 0;
  if (sscanf(path, "/proc/%d/status%n", &pid, &end) == 1 && end > 0 && path[end] == '\0')
    path = "/dev/null";
  int (*real)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
  return real(path, flags, mode);
}

#define OPEN(name)                             \
  int name(const char *path, int flags, ...) { \
    va_list rest;                              \
    va_start(rest, flags);                     \
    mode_t mode = va_arg(rest, int);           \
    va_end(rest);                              \
    return open_it(path, flags, mode);         \
  }
OPEN(open)
OPEN(open64)
