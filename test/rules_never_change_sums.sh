#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever is folded, cut, renamed or shortened: functions, trees and sites add up to the totals.
. "$(dirname "$0")/here.sh"

record t.mscope /usr/bin/python3.11 -c 'import json; print(len(json.dumps([str(i) * 5 for i in range(5000)])))' >/dev/null
peak=$(ask t.mscope 't["peak_bytes"]')
cat >my.rules <<'RULES'
# everything of the interpreter is one
s/^_?Py[A-Za-z]*_.*/Python/
fold ^_start$
cut-above ^main$
RULES
sums() { # OPTIONS...
  for view in '--by function' '--by site' --tree --stacks --callers; do
    # shellcheck disable=SC2086
    "$malloscope" report t.mscope $view --json "$@" >out.json || fail "$view $*: exit code $?"
    python3 - "$view" "$peak" <<'PY' || fail "$view $*: does not add up"
import json, sys
view, peak, r = sys.argv[1], int(sys.argv[2]), json.load(open("out.json"))
if view == "--by function": got = sum(f["self"] for f in r["functions"])
elif view == "--by site": got = sum(s["peak_bytes"] for s in r["sites"])
elif view == "--stacks": got = sum(s["peak_bytes"] for s in r["stacks"])
elif view == "--tree": got = sum(n["cumulative"] for n in r["tree"] if n["depth"] == 0)
else: got = sum(f["self"] for f in r["callgraph"] if f["role"] == "function")
assert got == peak, (got, peak)
PY
  done
}
sums --full-names
sums --rules std,python
sums --rules my.rules
sums --fold . --rename 's/x/y/g'
sums --fold module:python --cut-below json
sums --rules none --cut-above _PyEval --cut-below PyList
"$malloscope" report t.mscope --by function --rules my.rules --json >out.json
grep -q '"function": "Python"' out.json ||
  fail "nothing was renamed"

for bad in '--rules no-such-set' '--fold (' '--rename s/a/b' '--cut-below [' '--rules /dev/null/x'; do
  # shellcheck disable=SC2086
  "$malloscope" report t.mscope $bad >/dev/null 2>err
  same "exit code of $bad" $? 2
  same "lines said of $bad" "$(wc -l <err)" 1
done
