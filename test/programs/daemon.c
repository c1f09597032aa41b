// SPDX-License-Identifier: Apache-2.0
// A daemon outlives the program that started it, closes every descriptor, and
// goes on being recorded (F4, F6).
//
// run: classic n=300
// expect: keep allocations=3000 allocated_bytes=120000
// expect: after_the_parent allocations=1000 allocated_bytes=72000
// expect: processes count=2

#include <fcntl.h>
#include <sys/stat.h>

#include "known.h"

OPAQUE static void after_the_parent(void) {
  for (int i = 0; i < 1000; ++i) {
    volatile char *p = malloc(72);
    p[0] = 1;
  }
}

int main(int argc, char **argv) {
  (void)argc;
  keep(2000, 40);
  if (fork() != 0) return 0;
  setsid();
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  if (chdir("/")) return 1;
  keep(1000, 40);
  usleep((useconds_t)number(argv, 300) * 1000);
  after_the_parent();
  return 0;
}
