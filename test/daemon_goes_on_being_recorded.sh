#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A daemon outlives run, which says so and returns; the trace is completed when it ends.
. "$(dirname "$0")/here.sh"

began=$(date +%s)
"$malloscope" run -o t.mscope -- "$programs/daemon" classic 4000 2>err || fail "exit $?"
[ $(($(date +%s) - began)) -le 3 ] || fail "run waited for the daemon"
[ -s err ] || fail "nothing was said"
complete() { [ "$(ask t.mscope 'r["trace"]["complete"]')" = True ]; }
wait_for 8 complete || fail "never completed"
says t.mscope 'site("after_the_parent", "allocations")' 1000
says t.mscope 'len(processes)' 2
