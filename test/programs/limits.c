// SPDX-License-Identifier: Apache-2.0
// Limits that the program sets itself, or was started under, leave both it and
// the recording in order (F35).
//
// run: address_space
// run: file_size
// run: processes
// run: locked
// run: stack
// expect: keep allocations=20000 allocated_bytes=2000000
// counter address_space: off
// counter locked: off
// counter file_size: off

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "known.h"

static void *allocate(void *unused) {
  keep(10000, 100);
  return unused;
}

// As another user, for root is above such limits.
static void become_nobody(void) {
  if (geteuid() == 0) MUST(setgid(65534) == 0 && setuid(65534) == 0);
}

int main(int argc, char **argv) {
  (void)argc;
  struct rlimit limit = {0, 0};
  if (is(argv, "address_space")) {
    limit.rlim_cur = limit.rlim_max = 1 << 28;
    MUST(setrlimit(RLIMIT_AS, &limit) == 0);
    volatile size_t much = 1 << 29;
    MUST(malloc(much) == NULL && errno == ENOMEM);
  } else if (is(argv, "file_size")) {
    limit.rlim_cur = limit.rlim_max = 100;  // Enough for what we say.
    MUST(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  } else if (is(argv, "processes")) {
    keep(10000, 100);
    become_nobody();
    MUST(setrlimit(RLIMIT_NPROC, &limit) == 0);
    MUST(fork() == -1 && errno == EAGAIN);
    keep(10000, 100);
    say("done\n");
    return 0;
  } else if (is(argv, "locked")) {
    limit.rlim_cur = limit.rlim_max = 512 << 20;
    MUST(setrlimit(RLIMIT_AS, &limit) == 0);
    tell("raised", setrlimit(RLIMIT_MEMLOCK, &limit));  // Where we may.
    tell("locked", mlockall(MCL_CURRENT | MCL_FUTURE));
  } else if (is(argv, "stack")) {
    limit.rlim_cur = limit.rlim_max = 64 << 10;
    MUST(setrlimit(RLIMIT_STACK, &limit) == 0);
  }
  pthread_t thread;
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  MUST(pthread_create(&thread, &attributes, allocate, NULL) == 0);
  keep(10000, 100);
  pthread_join(thread, NULL);
  say("done\n");
  return 0;
}
