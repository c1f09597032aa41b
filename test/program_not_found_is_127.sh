#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# As in a shell: 127 for a program that is not there, 126 for one that cannot run.
. "$(dirname "$0")/here.sh"

"$malloscope" run -o a.mscope -- ./no-such-program 2>err
same "exit code" $? 127
grep -q no-such-program err || fail "the message does not name the program: $(cat err)"
echo data >plain && chmod 644 plain
"$malloscope" run -o b.mscope -- ./plain 2>err
same "exit code" $? 126
[ -s err ] || fail "no message"
