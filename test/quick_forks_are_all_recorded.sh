#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Three thousand children that end at once: each is there, with its exit code, and what it
# freed is known to be its parent's.
. "$(dirname "$0")/here.sh"

cat >storm.c <<'C'
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void) {
  void *inherited = malloc(10);
  for (int i = 0; i < 3000; ++i) {
    if (fork() == 0) free(inherited), _exit(3);
    if (i % 8 == 7) while (wait(0) > 0);
  }
  while (wait(0) > 0);
  return 0;
}
C
gcc -O1 -fno-builtin storm.c -o storm || fail "storm.c"
"$malloscope" run --quiet -o t.mscope -- ./storm || fail "exit $?"
same processes "$(ask t.mscope 'len(r["processes"])')" 3001
same "exit codes" "$(ask t.mscope 'sum(p["exit"] == {"code": 3} for p in r["processes"])')" 3000
same "parents" "$(ask t.mscope 'sum(p["parent_image"] == 1 for p in r["processes"])')" 3000
same "inherited frees" "$(ask t.mscope 'r["totals"]["inherited_frees"]')" 3000
same "unmatched frees" "$(ask t.mscope 'r["totals"]["unmatched_frees"]')" 0
