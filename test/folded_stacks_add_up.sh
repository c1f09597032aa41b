#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export --format folded: each metric's lines add up to the report's total.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- "$programs/peak" >/dev/null || fail "exit $?"
for pair in allocations:allocations allocated:allocated_bytes live:live_bytes peak:peak_bytes temporary:temporary; do
  "$malloscope" export t.mscope --format folded --metric ${pair%:*} -o - >folded || fail "export: exit $?"
  same "sum of ${pair%:*}" "$(awk '{s += $NF} END {printf "%d", s}' folded)" "$(ask t.mscope "r['totals']['${pair#*:}']")"
done
grep -qE '(^|;)main;short_flood;?.* 60000000$' <("$malloscope" export t.mscope --format folded --metric peak -o -) ||
  fail "not root first: $("$malloscope" export t.mscope --format folded --metric peak -o -)"
