// SPDX-License-Identifier: Apache-2.0
// iconv_open and iconv_close load and unload libc's own modules, past dlclose.
//
// run: loop n=300 long=5000
// expect: churn allocations=10*n

#include <iconv.h>

#include "known.h"

int main(int argc, char **argv) {
  (void)argc;
  const char *sets[] = {"UTF-16", "LATIN1", "KOI8-R", "EUC-JP", "CP1252", "SHIFT_JIS"};
  long good = 0;
  for (long i = 0; i < number(argv, 300); ++i) {
    iconv_t conversion = iconv_open("UTF-8", sets[i % 6]);
    MUST(conversion != (iconv_t)-1);
    char in[4] = "abc", out[64], *from = in, *to = out;
    size_t in_left = 2, out_left = sizeof out;
    good += iconv(conversion, &from, &in_left, &to, &out_left) != (size_t)-1;
    churn(10, 40);
    iconv_close(conversion);
  }
  tell("converted", good);
  return 0;
}
