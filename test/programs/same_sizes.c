// SPDX-License-Identifier: Apache-2.0
// Two thousand blocks of one size, none of them freed. With an argument, first one of calloc and so
// many that are.
#include <stdlib.h>

int main(int argc, char** argv) {
  if (argc > 1 && !calloc(1, 10)) return 1;
  for (int i = argc > 1 ? atoi(argv[1]) : 0; i > 0; --i) free(malloc(64));
  for (int i = 0; i < 2000; ++i)
    if (!malloc(64)) return 1;
}
