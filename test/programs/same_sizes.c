// SPDX-License-Identifier: Apache-2.0
// Two thousand blocks of one size, none of them freed.
#include <stdlib.h>

int main(void) {
  for (int i = 0; i < 2000; ++i)
    if (!malloc(64)) return 1;
}
