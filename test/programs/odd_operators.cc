// SPDX-License-Identifier: Apache-2.0
// Behind odd.cc: what an operator new or delete allocates and frees for itself is told like any
// other block, with nothing twice and nothing missing, also after a pause that a short
// record has no room for.
//
// run: temporary_first n=100
// run: grows n=100
// run: offset n=100
// run: temporary_last n=100
// run: tries n=100
// build: -Wl,-rpath,$ORIGIN -L. -lodd
// expect: totals unmatched_frees=0 order_violations=0
// expect temporary_first: totals allocations=>=3*n frees=>=3*n
// expect grows: totals allocations=>=2*n frees=>=2*n
// expect offset: totals allocations=>=n frees=>=n
// expect temporary_last: totals allocations=>=3*n frees=>=3*n
// expect tries: totals allocations=>=4*n frees=>=4*n
// expect tries: calls free=>=4*n
// counter: off

#include <string.h>

#include <new>

#include "known.h"

int main(int, char **argv) {
  const char *const ways[] = {"temporary_first", "grows", "offset", "temporary_last", "tries"};
  for (int i = 0; i < 5; ++i)
    if (is(argv, ways[i]) && !getenv("ODD")) {
      char way[] = {static_cast<char>('0' + i), 0};
      setenv("ODD", way, 1);
      execv("/proc/self/exe", argv);
    }
  for (long i = 0, n = number(argv, 100); i < n; ++i) {
    void *volatile block = ::operator new(500);
    if (i == 50) usleep(50000);
    ::operator delete(block);
  }
}
