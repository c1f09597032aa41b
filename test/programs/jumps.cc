// SPDX-License-Identifier: Apache-2.0
// longjmp and exceptions leave many frames at once, past whatever the recorder
// remembered of them (F20).
//
// run: longjmp n=10000
// run: throw n=10000
// expect: at_the_bottom allocations=n allocated_bytes=48*n
// expect: after allocations=n allocated_bytes=24*n

#include <csetjmp>
#include <stdexcept>

#include "known.h"

static jmp_buf back;

OPAQUE static void at_the_bottom() {
  auto *p = static_cast<volatile char *>(malloc(48));
  p[0] = 1;
}

OPAQUE static void after() {
  auto *p = static_cast<volatile char *>(malloc(24));
  p[0] = 1;
}

OPAQUE static int down(int depth, bool jump) {
  volatile char room[64];
  room[0] = static_cast<char>(depth);
  if (depth > 0) return down(depth - 1, jump) + room[0];
  at_the_bottom();
  if (jump) longjmp(back, 1);
  throw std::runtime_error("up");
}

int main(int, char **argv) {
  static long caught, i;
  const bool jump = is(argv, "longjmp");
  for (i = 0; i < number(argv, 10000); ++i) {
    if (jump) {
      if (setjmp(back) == 0) down(static_cast<int>(i % 50), true);
      ++caught;
    } else {
      try {
        down(static_cast<int>(i % 50), false);
      } catch (const std::runtime_error &) {
        ++caught;
      }
    }
    after();
  }
  tell("caught", caught);
}
