#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that is linked with gaps between its segments (node is) has complete stacks too.
. "$(dirname "$0")/here.sh"

cat >gaps.c <<'C'
#include <stdlib.h>
__attribute__((noipa)) static void *inner(void) { return malloc(10); }
__attribute__((noipa)) static void *outer(void) { void *p = inner(); __asm__ volatile(""); return p; }
int main(void) { for (int i = 0; i < 100; ++i) free(outer()); return 0; }
C
gcc -O1 -g -no-pie -Wl,--section-start=.text=0x2000000 gaps.c -o gaps || fail "no compiler"
record t.mscope ./gaps || fail "exit $?"
says t.mscope 'site("inner", "allocations")' 100
says t.mscope '[f["function"] for f in sites[0]["stack"]][:3]' "['inner', 'outer', 'main']"
says t.mscope 'r["recorder"]["unwind_failures"]' 0
