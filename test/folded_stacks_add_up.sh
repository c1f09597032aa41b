#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export --format folded: each metric's lines add up to the report's total, root first.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/peak" >/dev/null || fail "exit $?"
folded() { "$malloscope" export t.mscope --format folded --metric "$1" -o -; }
for pair in allocations:allocations allocated:allocated_bytes live:live_bytes \
  peak:peak_bytes temporary:temporary; do
  sum=$(folded ${pair%:*} | awk '{s += $NF} END {printf "%d", s}')
  says t.mscope "t['${pair#*:}']" "$sum"
done
folded peak | grep -qE '(^|;)main;short_flood;?.* 60000000$' ||
  fail "not root first: $(folded peak)"
