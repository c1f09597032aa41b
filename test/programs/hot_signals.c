// SPDX-License-Identifier: Apache-2.0
// The same over glibc's allocator, with the only calls that it allows at any
// instant: free(NULL) and a malloc that must fail. Both enter the hooks while
// the hooks are at work (F18).
//
// run: hot n=3000 long=30000
// expect: calls free=>=n
// expect: totals failed=n unmatched_frees=0

#include <sys/time.h>

#include "known.h"

static volatile long handled, limit;
static volatile size_t huge = SIZE_MAX / 2 + 1;

static void on_signal(int unused) {
  (void)unused;
  int saved = errno;
  if (handled < limit) {
    free(NULL);
    if (malloc(huge)) _exit(97);
    ++handled;
  }
  errno = saved;
}

int main(int argc, char **argv) {
  (void)argc;
  limit = number(argv, 3000);
  churn(1000, 24);
  signal(SIGALRM, on_signal);
  struct itimerval often = {{0, 100}, {0, 100}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (handled < limit) churn(1000, 24);
  say("done\n");
  return 0;
}
