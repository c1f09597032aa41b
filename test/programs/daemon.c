// SPDX-License-Identifier: Apache-2.0
// A daemon outlives the program that started it, closes every descriptor, and
// goes on being recorded (F4, F6). In mode late its child is forked behind libc's
// back and first runs when its parent is long gone; in mode spawned it is another
// program, which the loader is still busy with then.
//
// run: classic n=300
// run: late n=300
// run: spawned n=300
// expect: keep allocations=3000 allocated_bytes=120000
// expect: after_the_parent allocations=1000 allocated_bytes=72000
// expect: processes count=2

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>

#include "known.h"

OPAQUE static void after_the_parent(void) {
  for (int i = 0; i < 1000; ++i) {
    volatile char *p = malloc(72);
    p[0] = 1;
  }
}

extern char **environ;

static int start_another(char **argv) {
  char *command[] = {argv[0], (char *)"another", argv[2], NULL};
  pid_t pid;
  return posix_spawn(&pid, "/proc/self/exe", NULL, NULL, command, environ);
}

int main(int argc, char **argv) {
  const char *mode = argc > 1 ? argv[1] : "classic";
  int late = !strcmp(mode, "late"), another = !strcmp(mode, "another");
  if (!another) keep(2000, 40);
  if (!strcmp(mode, "spawned")) _exit(start_another(argv));
  if (!another && (late ? syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0) : fork()) != 0) return 0;
  if (late) usleep(200 * 1000);
  setsid();
  for (int fd = 0; fd < 1024; ++fd) close(fd);
  if (chdir("/")) return 1;
  keep(1000, 40);
  usleep((useconds_t)number(argv, 300) * 1000);
  after_the_parent();
  return 0;
}
