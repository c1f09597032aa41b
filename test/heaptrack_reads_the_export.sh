#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export --format heaptrack: heaptrack_print adds the events up to the report's sums. A
# reallocation is a free and an allocation to it.
. "$(dirname "$0")/here.sh"

command -v heaptrack_print >/dev/null || skip "heaptrack is not installed"
cost() { # FILE COST-TYPE: the sum over all stacks.
  heaptrack_print --disable-builtin-suppressions -f "$1" -F out.folded --flamegraph-cost-type "$2" \
    >print.txt 2>error.txt || fail "heaptrack_print: exit $?, $(cat error.txt)"
  [ ! -s error.txt ] || fail "heaptrack_print says $(head -3 error.txt)"
  awk '{s += $NF} END {printf "%d", s}' out.folded
}

for program in reallocs peak thread_churn; do
  record t.mscope "$programs/$program" >/dev/null || fail "$program: exit $?"
  "$malloscope" export t.mscope --format heaptrack --force -o t.heaptrack || fail "exit $?"
  says t.mscope "t['allocations'] + t['reallocations']" "$(cost t.heaptrack allocations)"
  says t.mscope "t['live_bytes']" "$(cost t.heaptrack leaked)"
  says t.mscope "t['peak_bytes']" "$(cost t.heaptrack peak)"
done
"$malloscope" export t.mscope --format heaptrack --focus no_such_function --force -o none.heaptrack
same "--focus of nothing" "$(cost none.heaptrack allocations)" 0
