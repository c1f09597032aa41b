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

# For each unit of work: no change is rounded away, none is made up, and nobody is new who was there.
"$malloscope" diff old.mscope new.mscope --metric allocations --per 1000,1500 --json >diff.json || fail "--per: $?"
"$malloscope" diff old.mscope new.mscope --metric allocations --per 1000,1500 >diff.txt || fail "--per: $?"
grep -q 'shrunk .* 0.001 .*steady' diff.txt || fail "--per as text: $(cat diff.txt)"
python3 - <<'P' || exit 1
import json
diff = json.load(open("diff.json"))
leaky = [s for s in diff["sites"] if s["function"] == "leaky"]
steady = [s for s in diff["sites"] if s["function"] == "steady"]
assert len(leaky) == 1 and len(steady) == 3, diff["sites"]
assert (leaky[0]["status"], leaky[0]["was"], leaky[0]["is"], leaky[0]["change"]) == ("same", 0.01, 0.01, 0)
assert leaky[0]["after"]["live_bytes"] == 0.64, leaky
for s in steady:
    assert s["status"] == "shrunk" and s["was"] == 0.001 and abs(s["is"] - 1 / 1500) < 1e-12, s
P
"$malloscope" diff old.mscope old.mscope --metric allocations --per 100000,100001 >diff.txt || fail "--per: $?"
head -1 diff.txt | grep -q '(less than 0.1 %)' || fail "a change of a thousandth of a percent: $(head -1 diff.txt)"
for per in 0,1 -1,1 inf,1 nan,1 1e-300,1 1e-9,1 1e300,1 1 1,2,3; do
  "$malloscope" diff old.mscope new.mscope --per=$per >/dev/null 2>err
  same "exit code of --per $per" $? 2
  grep -q 'is not two numbers' err || fail "--per $per: $(cat err)"
done
