#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace cut anywhere is read up to the cut, with a warning.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/ends" return >/dev/null
size=$(stat -c %s t.mscope)
for part in 1 10 25 50 75 90 99; do
  head -c $((size * part / 100)) t.mscope >cut.mscope
  "$malloscope" report cut.mscope --json >cut.json 2>err
  code=$?
  [ $code = 3 ] && [ $part -le 10 ] && continue # Not even its head is there.
  same "exit code at $part %" $code 0
  [ -s err ] || fail "no warning at $part %"
  python3 -c 'import json; assert json.load(open("cut.json"))["trace"]["complete"] is False' ||
    fail "at $part % the trace is said to be complete"
  # Once is enough.
  for verb in report info; do
    "$malloscope" $verb cut.mscope >out 2>&1
    same "warnings of $verb at $part %" "$(grep -c 'is not complete' out)" 1
  done
done
