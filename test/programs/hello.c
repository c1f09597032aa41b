// SPDX-License-Identifier: Apache-2.0
// The smallest program with known totals; also built static, for musl, for 32
// bits, with sanitizers, and linked with other allocators (test/CMakeLists.txt).
//
// expect: keep allocations=1000 allocated_bytes=48000 live_blocks=1000
// expect: churn allocations=1000 allocated_bytes=24000 temporary=1000
// expect: totals order_violations=0 unmatched_frees=0

#include "known.h"

int main(int argc, char **argv) {
  keep(1000, 48);
  churn(1000, 24);
  say("hello\n");
  return argc > 1 ? atoi(argv[1]) : 0;
}
