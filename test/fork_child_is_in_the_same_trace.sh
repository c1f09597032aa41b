#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A forked child has its own account in the same file.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- "$programs/fork" plain >/dev/null || fail "exit $?"
same processes "$(ask t.mscope 'len(r["processes"])')" 2
same "child's parent" "$(ask t.mscope 'r["processes"][1]["parent"] == r["processes"][0]["pid"]')" True
same allocations "$(ask t.mscope 'site("keep", "allocations")')" 3000
same "inherited frees" "$(ask t.mscope 'r["totals"]["inherited_frees"]')" 500
same "child's exit" "$(ask t.mscope 'r["processes"][1]["exit"]')" "{'code': 7}"
child=$(ask t.mscope 'r["processes"][1]["pid"]')
"$malloscope" report t.mscope --json --process "$child" >child.json || fail "--process: exit $?"
python3 -c 'import json; t = json.load(open("child.json"))["totals"]
assert t["allocated_bytes"] - t["freed_bytes"] == t["live_bytes"] == 40000, t' || fail "child's account"
