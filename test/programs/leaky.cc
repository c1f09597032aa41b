// SPDX-License-Identifier: Apache-2.0
// Leaks of every kind, whose numbers are known: once at the start, again in every
// event, through a container, through a deep recursion that no filter can see the
// outer end of, and two that are known and suppressed (one by the program itself).
//
// run: leaks n=40
// expect: totals order_violations=0 unmatched_frees=0

#include <vector>

#include "known.h"

namespace shop {

struct Hit {
  double x, y, z;
};

OPAQUE void* load_tables() { return malloc(1000); }
OPAQUE void* known_pool() { return malloc(500); }
OPAQUE void* embedded_pool() { return malloc(700); }

OPAQUE Hit* make_hit() { return new Hit(); }
OPAQUE std::vector<int>* make_cells() { return new std::vector<int>(100); }

struct Algorithm {
  OPAQUE void sysExecute(int event) {
    make_hit();
    if (event % 10 == 0) make_cells();
    known_pool();
    churn(5, 64);
  }
};

// Deeper than any recorded stack is long.
OPAQUE int dive(int depth) {
  if (depth == 0) {
    return malloc(33) == nullptr;
  }
  return dive(depth - 1) + 1;
}

}  // namespace shop

extern "C" __attribute__((used, visibility("default"))) const char* __lsan_default_suppressions() {
  return "# The program's own.\nleak:embedded_pool\n";
}

int main(int argc, char** argv) {
  long events = argc > 2 ? atol(argv[2]) : 40;
  shop::load_tables();
  shop::embedded_pool();
  shop::Algorithm algorithm;
  for (long i = 0; i < events; ++i) {
    algorithm.sysExecute(static_cast<int>(i));
    usleep(2000);
  }
  if (argc > 1 && strcmp(argv[1], "deep") == 0) shop::dive(20000);
  return 0;
}
