#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A signal sent to run alone is passed on.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- sleep 30 &
launcher=$!
wait_for 5 program_of $launcher "$(command -v sleep)" >/dev/null || fail "the program did not start"
sleep 0.2
kill -TERM $launcher
wait $launcher
same "exit code" $? 143
says t.mscope 'processes[0]["exit"]' "{'signal': 15}"
