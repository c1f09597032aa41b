#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sites' shares at the peak add up to it exactly; so do live bytes and calls.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- /usr/bin/python3.11 -c 'x = [str(i) * 50 for i in range(100000)]; print(len(x))' >/dev/null
for key in peak_bytes live_bytes allocated_bytes allocations temporary live_blocks; do
  same "sum of $key" "$(ask t.mscope "sum(s['$key'] for s in r['sites'])")" "$(ask t.mscope "r['totals']['$key']")"
done
same "allocated - freed" "$(ask t.mscope 'r["totals"]["allocated_bytes"] - r["totals"]["freed_bytes"] - r["totals"]["live_bytes"]')" 0
