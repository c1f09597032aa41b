// SPDX-License-Identifier: Apache-2.0
// Threads allocate without pause while the main thread forks: no child may find
// a lock held, and every child's calls are there (F4).
//
// run: storm n=100 long=2000
// expect: child_work allocations=50*n allocated_bytes=50*n*56 live_blocks=50*n
// expect: processes count=n+1

#include <pthread.h>

#include "known.h"

static volatile int stop;

static void *allocate(void *unused) {
  while (!stop) churn(100, 200);
  return unused;
}

OPAQUE static void child_work(void) {
  for (int i = 0; i < 50; ++i) {
    volatile char *p = malloc(56);
    p[0] = 1;
  }
}

int main(int argc, char **argv) {
  (void)argc;
  long n = number(argv, 100), good = 0;
  pthread_t threads[3];
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, allocate, NULL);
  for (long i = 0; i < n; ++i) {
    pid_t pid = fork();
    if (pid == 0) child_work(), _exit(0);
    int status;
    MUST(waitpid(pid, &status, 0) == pid);
    good += status == 0;
  }
  stop = 1;
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  tell("children", good);
  return 0;
}
