// SPDX-License-Identifier: Apache-2.0
// A caller that breaks the ABI's stack alignment runs natively, so it must run
// with the recorder between it and libc too (F37).
//
// expect: misaligned_malloc allocations=1000 allocated_bytes=40000
// counter: off

#include "known.h"

__attribute__((naked, noinline)) static void *misaligned_malloc(size_t size) {
  (void)size;
  __asm__(
      ".cfi_adjust_cfa_offset 0\n sub $16, %rsp\n .cfi_adjust_cfa_offset 16\n"
      "call malloc@PLT\n add $16, %rsp\n .cfi_adjust_cfa_offset -16\n ret\n");
}

int main(void) {
  for (int i = 0; i < 1000; ++i) MUST(misaligned_malloc(40));
  say("done\n");
  return 0;
}
