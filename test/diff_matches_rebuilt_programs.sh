#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that was rebuilt, with lines inserted and under another name, is compared with its older
# self: only what changed is told, and the changes add up.
. "$(dirname "$0")/here.sh"

source_of() { # LEAKS
  cat <<C
#include <stdlib.h>
__attribute__((noinline)) void steady(void) {
  volatile char *a = malloc(100); a[0] = 1;
  volatile char *b = malloc(200); b[0] = 1;
  volatile char *c = malloc(300); c[0] = 1;
}
__attribute__((noinline)) void leaky(void) {
  for (int i = 0; i < $1; ++i) { volatile char *p = malloc(64); p[0] = 1; }
}
int main(void) { steady(); leaky(); }
C
}
source_of 10 >old.c
source_of 15 | sed 's/^__attribute__.*steady/\/\/ A line\n\/\/ and another.\n&/' >new.c
gcc -g -O1 -fno-builtin old.c -o app-1.2 && gcc -g -O1 -fno-builtin new.c -o app-1.3 || fail "gcc"
record old.mscope ./app-1.2
record new.mscope ./app-1.3
"$malloscope" diff old.mscope new.mscope --metric live --json >diff.json || fail "diff: $?"
python3 - <<'P' || exit 1
import json
diff = json.load(open("diff.json"))
changed = [(s["function"], s["before"]["live_bytes"], s["after"]["live_bytes"])
           for s in diff["sites"] if s["before"] != s["after"]]
assert changed == [("leaky", 640, 960)], changed
assert all(s["before"]["live_bytes"] and s["after"]["live_bytes"] for s in diff["sites"]), diff
assert diff["totals"]["after"]["live_bytes"] - diff["totals"]["before"]["live_bytes"] == 320
P
