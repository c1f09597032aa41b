// SPDX-License-Identifier: Apache-2.0
// The floating-point environment is the program's: rounding, flags, traps, x87
// precision and the upper halves of vector registers kept by hand (F38).
//
// build: -lm -frounding-math -mavx
// expect: churn allocations=30000

#include <fenv.h>
#include <math.h>
#include <xmmintrin.h>

#include "known.h"

int main(void) {
  volatile double third = 1.0, three = 3.0;
  int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
  for (int m = 0; m < 3; ++m) {
    fesetround(modes[m]);
    feclearexcept(FE_ALL_EXCEPT);
    unsigned short control, after;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    control = (unsigned short)((control & ~0x300) | 0x200);  // x87 at double precision.
    __asm__ volatile("fldcw %0" ::"m"(control));
    unsigned csr = _mm_getcsr() | 0x8040;  // Flush denormals.
    _mm_setcsr(csr);
    churn(5000, 40);
    __asm__ volatile("fnstcw %0" : "=m"(after));
    MUST(after == control && _mm_getcsr() == csr && fegetround() == modes[m]);
    MUST(fetestexcept(FE_ALL_EXCEPT) == 0);
    feenableexcept(FE_DIVBYZERO | FE_INVALID | FE_OVERFLOW);
    churn(5000, 40);
    tell("rounded", (long)((third / three - 0.333333333333333) * 1e18));
    fedisableexcept(FE_ALL_EXCEPT);
  }
  return 0;
}
