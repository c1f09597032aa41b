#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A call takes at most three bytes, even if nothing about it can be foretold: four threads ask for
# random sizes, free random blocks of their own and of the others.
. "$(dirname "$0")/here.sh"

record a.mscope "$programs/passing" 4 400000 50000 || fail "passing exits with $?"
"$malloscope" workload a.mscope -o a.mwork --json >w.json || fail "workload exits with $?"
/usr/bin/python3 -c '
import json, os
w = json.load(open("w.json"))
per_call = os.path.getsize("a.mwork") / w["totals"]["calls"]
assert abs(per_call - w["workload"]["bytes_per_call"]) < 0.001 and per_call < 2.85, per_call
' || fail "more than 2.85 bytes a call"
