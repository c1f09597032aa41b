// SPDX-License-Identifier: Apache-2.0
// The recorder owns no descriptor in the target: numbers are the program's own,
// closing all of them changes nothing, and nothing is ever written to a file
// the program opened afterwards (F6, F7).
//
// run: numbers
// run: close_all
// run: close_range
// run: reuse
// run: none_allowed
// expect: keep allocations=100000 allocated_bytes=4000000 live_blocks=100000
// counter none_allowed: off

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "known.h"

static void *allocate(void *unused) {
  keep(50000, 40);
  return unused;
}

// Descriptors above stderr that are open now, as the kernel sees them.
static int open_descriptors(void) {
  int count = 0;
  for (int fd = 3; fd < 1024; ++fd) count += fcntl(fd, F_GETFD) != -1;
  return count;
}

int main(int argc, char **argv) {
  (void)argc;
  int out = 1, files[20];
  if (is(argv, "numbers")) {
    tell("open", open_descriptors());
    tell("first", open("/dev/null", O_RDONLY));
    tell("second", open("/dev/null", O_RDONLY));
  } else if (is(argv, "close_all") || is(argv, "reuse")) {
    out = dup2(1, 1000);
    for (int fd = 0; fd < 1000; ++fd) close(fd);
  } else if (is(argv, "close_range")) {
    syscall(SYS_close_range, 3u, ~0u, 0u);
  } else if (is(argv, "none_allowed")) {
    struct rlimit none = {0, 0};
    MUST(setrlimit(RLIMIT_NOFILE, &none) == 0);
  }
  if (is(argv, "reuse"))
    for (int i = 0; i < 20; ++i) {
      files[i] = open("/tmp", O_TMPFILE | O_RDWR, 0600);
      MUST(files[i] == i && write(files[i], "mine", 4) == 4);
    }
  pthread_t thread;
  MUST(pthread_create(&thread, NULL, allocate, NULL) == 0);
  keep(50000, 40);
  pthread_join(thread, NULL);
  if (is(argv, "reuse"))
    for (int i = 0; i < 20; ++i) {
      struct stat s;
      MUST(fstat(files[i], &s) == 0 && s.st_size == 4);
    }
  return write(out, "done\n", 5) == 5 ? 0 : 1;
}
