#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without -o the trace is named after the program, and nothing is overwritten.
. "$(dirname "$0")/here.sh"

for i in 1 2 3; do "$malloscope" run --quiet -- "$programs/hello" >/dev/null || fail "exit $?"; done
same "traces" "$(ls malloscope.hello.*.mscope* | wc -l)" 3
for t in malloscope.hello.*.mscope*; do
  says "$t" 'site("keep", "allocations")' 1000
done
