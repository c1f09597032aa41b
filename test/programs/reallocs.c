// SPDX-License-Identifier: Apache-2.0
// realloc in all its meanings: growth, shrinkage, birth, death, failure.
//
// expect: totals allocations=101 reallocations=2000 frees=101 failed=1
// expect: totals allocated_bytes=1010100 freed_bytes=1010100 live_bytes=0 live_blocks=0
// expect: totals peak_bytes=1010100 unmatched_frees=0

#include "known.h"

int main(void) {
  volatile size_t huge = SIZE_MAX / 2 + 1;
  char *grows = realloc(NULL, 100);  // 100
  for (int i = 1; i <= 1000; ++i) {
    grows = realloc(grows, 100 + 1000 * (size_t)i);  // +1000 each: 1,000,100 in all
    grows[i] = 1;
  }
  MUST(realloc(grows, huge) == NULL && grows[1000] == 1);
  char *small[100];
  for (int i = 0; i < 100; ++i) small[i] = malloc(100);  // +10,000: the peak is 1,010,100
  for (int i = 0; i < 100; ++i) MUST(realloc(small[i], 0) == NULL);
  for (int i = 999; i >= 0; --i) grows = realloc(grows, 100 + 1000 * (size_t)i);
  free(grows);
  say("done\n");
  return 0;
}
