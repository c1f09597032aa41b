// SPDX-License-Identifier: Apache-2.0
// exec gives a new image in the same trace, however it is done and whatever
// environment it is given (F17).
//
// run: again n=5 exit=5
// run: empty_environment n=2 exit=5
// run: from_a_thread n=2 exit=5
// run: by_descriptor n=2 exit=5
// run: with_list n=2 exit=5
// run: bare_environment n=2 exit=5
// run: raw_syscall n=2 exit=5
// run: raw_empty_environment n=2 exit=5
// run: raw_by_descriptor n=2 exit=5
// expect: keep allocations=1000*n allocated_bytes=40000*n live_blocks=1000*n
// expect: processes count=n
// counter empty_environment: off
// counter bare_environment: off
// counter raw_empty_environment: off

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "known.h"

extern char **environ;
static char **arguments;
static char left[24];

OPAQUE static void exec_again(void) {
  char *next[] = {arguments[0], arguments[1], left, NULL};
  char *none[] = {NULL};
  char *bare[] = {"PATH=/usr/bin:/bin", "LD_PRELOADED=no", NULL};
  if (is(arguments, "by_descriptor"))
    fexecve(open("/proc/self/exe", O_RDONLY | O_CLOEXEC), next, environ);
  if (is(arguments, "with_list")) execl("/proc/self/exe", next[0], next[1], next[2], (char *)NULL);
  if (is(arguments, "empty_environment")) execve("/proc/self/exe", next, none);
  if (is(arguments, "bare_environment")) execvpe("/proc/self/exe", next, bare);
  if (is(arguments, "raw_syscall")) syscall(SYS_execve, "/proc/self/exe", next, environ);
  if (is(arguments, "raw_empty_environment")) syscall(SYS_execve, "/proc/self/exe", next, NULL);
  if (is(arguments, "raw_by_descriptor"))
    syscall(SYS_execveat, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "", next, environ,
            AT_EMPTY_PATH);
  execv("/proc/self/exe", next);
}

// What LD_PRELOAD does not explain is the program's own environment.
static long others(void) {
  long count = 0;
  for (char **e = environ; *e; ++e) count += strncmp(*e, "LD_PRELOAD=", 11) != 0;
  return count;
}

static void *thread(void *unused) {
  exec_again();
  return unused;
}

int main(int argc, char **argv) {
  (void)argc;
  arguments = argv;
  long n = number(argv, 2);
  keep(1000, 40);
  tell("images left", n);
  tell("other variables", others());
  if (n == 1) return 5;
  snprintf(left, sizeof left, "%ld", n - 1);
  if (is(argv, "from_a_thread")) {
    pthread_t t;
    pthread_create(&t, NULL, thread, NULL);
    pthread_join(t, NULL);
  } else {
    exec_again();
  }
  say("exec failed\n");
  return 1;
}
