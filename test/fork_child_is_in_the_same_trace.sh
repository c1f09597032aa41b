#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A forked child has its own account in the same file.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/fork" plain >/dev/null || fail "exit $?"
says t.mscope 'len(processes)' 2
says t.mscope 'processes[1]["parent"] == processes[0]["pid"]' True
says t.mscope 'site("keep", "allocations")' 3000
says t.mscope 't["inherited_frees"]' 500
says t.mscope 'processes[1]["exit"]' "{'code': 7}"
child=$(ask t.mscope 'processes[1]["pid"]')
"$malloscope" report t.mscope --json --process "$child" >child.json || fail "--process: exit $?"
python3 -c 'import json; t = json.load(open("child.json"))["totals"]
assert t["allocated_bytes"] - t["freed_bytes"] == t["live_bytes"] == 40000, t' ||
  fail "child's account"
