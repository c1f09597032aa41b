#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Leaks and what was ignored are together all that is live at the end, to the byte; a window's
# leaks are never more than those of the whole.
. "$(dirname "$0")/here.sh"

check() { # TRACE ARGUMENTS...
  local trace=$1; shift
  "$malloscope" report "$trace" --json >report.json || fail "report: exit $?"
  "$malloscope" leaks "$trace" --json "$@" >leaks.json || fail "leaks $trace $*: exit $?"
  "$malloscope" leaks "$trace" --json "$@" --from 50% >late.json || fail "late: exit $?"
  "$malloscope" leaks "$trace" --json "$@" --to 50% >early.json || fail "early: exit $?"
  python3 - "$trace $*" <<'P' || exit 1
import json, sys
def load(name): return json.load(open(name + ".json"))
live, leaks, late, early = load("report")["totals"], load("leaks"), load("late"), load("early")
for key, of in (("bytes", "live_bytes"), ("blocks", "live_blocks")):
    t = leaks["totals"]
    assert t[key] + t["ignored_" + key] == live[of], (sys.argv[1], key, t, live[of])
    assert sum(l[key] for l in leaks["leaks"]) == t[key], (sys.argv[1], key)
    assert sum(s[key] for s in leaks["suppressions"]) == t["ignored_" + key], (sys.argv[1], key)
    t = late["totals"]
    assert t[key] + t["ignored_" + key] <= live[of], (sys.argv[1], "late", key)
half = leaks["trace"]["duration_ns"] / 2
assert all(l["first_ns"] >= half * 0.99 for l in late["leaks"]), sys.argv[1]
assert all(l["last_ns"] <= half * 1.01 for l in early["leaks"]), sys.argv[1]
P
}
record demo.mscope "$build/bin/malloscope-demo" >/dev/null
record python.mscope /usr/bin/python3.11 -c 'import json, re; print(len(str(json)))' >/dev/null
record sqlite.mscope sqlite3 :memory: 'create table t(a); select count(*) from t' >/dev/null
record fork.mscope "$programs/fork" plain >/dev/null
for trace in demo python sqlite fork; do
  check $trace.mscope
  check $trace.mscope --no-default-suppressions
  check $trace.mscope --thread .
done
"$malloscope" leaks demo.mscope | grep -q 'cache::Sessions::open.*demo.cc:' ||
  fail "the demo's leak is not on the first screen: $("$malloscope" leaks demo.mscope)"

# Stacks of a deep recursion are many and long; only those that are shown are made, one at a time.
cat >deep.c <<'C'
#include <stdlib.h>
void *volatile kept;
__attribute__((noinline)) int deeper(int n) {
  kept = malloc(10 + n);
  return n ? deeper(n - 1) + 1 : 0;
}
int main(void) { return deeper(3000) == 0; }
C
gcc -g -O0 deep.c -o deep || fail "gcc"
record deep.mscope ./deep
most() { # KILOBYTES ARGUMENTS...
  local limit=$1; shift
  (ulimit -v "$limit"; exec "$malloscope" "$@" >out 2>err) || fail "$* needs more than $limit kB: $(cat err)"
}
most 400000 leaks deep.mscope
most 400000 leaks deep.mscope --json
same "leaks as JSON" "$(python3 -c 'import json; r = json.load(open("out"))
print(max(len(l["stack"]) for l in r["leaks"]) > 3000)')" True
most 400000 report deep.mscope --json --metric allocated --stacks
