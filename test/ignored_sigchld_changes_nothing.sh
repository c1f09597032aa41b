#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Started with SIGCHLD ignored, as some supervisors do: run ends with the program's exit code, and
# the program finds the signal as run did.
. "$(dirname "$0")/here.sh"

ignored='grep SigIgn /proc/self/status; exit 7'
env --ignore-signal=CHLD sh -c "$ignored" >native
same "exit code alone" $? 7
timeout -s KILL 20 env --ignore-signal=CHLD "$malloscope" run --quiet -o t.mscope -- sh -c "$ignored" >out
same "exit code" $? 7
same "what the program ignores" "$(cat out)" "$(cat native)"
says t.mscope 'r["trace"]["complete"]' True
says t.mscope 'processes[0]["exit"]' "{'code': 7}"
# The same for a program that is not recorded.
timeout -s KILL 20 env --ignore-signal=CHLD "$malloscope" run --quiet -o s.mscope -- \
  "$programs/hello_static" 6 >out 2>err
same "exit code of a static program" $? 6
