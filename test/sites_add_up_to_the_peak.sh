#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The sites' shares at the peak add up to it exactly; so do live bytes and calls.
. "$(dirname "$0")/here.sh"

record t.mscope /usr/bin/python3.11 -c 'print(len([str(i) * 50 for i in range(100000)]))' >/dev/null
for key in peak_bytes live_bytes allocated_bytes allocations temporary live_blocks; do
  says t.mscope "sum(s['$key'] for s in sites) - t['$key']" 0
done
says t.mscope 't["allocated_bytes"] - t["freed_bytes"] - t["live_bytes"]' 0
says t.mscope 't["peak_bytes"] > 1000000' True
