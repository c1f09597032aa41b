#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Nobody can read what we say: the program's exit code is still its own.
. "$(dirname "$0")/here.sh"

"$malloscope" run -o a.mscope -- sh -c 'exit 7' 2>/dev/full
same "stderr full" $? 7
"$malloscope" run -o b.mscope -- sh -c 'exit 7' 2> >(exit 0)
same "stderr closed at the other end" $? 7
"$malloscope" report nothing.mscope 2>/dev/full
same "report of nothing" $? 3
