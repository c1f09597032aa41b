#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Started with standard descriptors closed: the program has them closed too, and is recorded.
. "$(dirname "$0")/here.sh"

"$programs/ends" exit <&- >&- 2>&-
native=$?
"$malloscope" run --quiet -o a.mscope -- "$programs/ends" exit <&- >&- 2>&-
same "exit code" $? $native
same allocations "$(ask a.mscope 'site("keep", "allocations")')" 100000
"$malloscope" run --quiet -o b.mscope -- sh -c 'ls /proc/self/fd | tr "\n" " "' <&- >out 2>err
same "descriptors" "$(cat out)" "$(sh -c 'ls /proc/self/fd | tr "\n" " "' <&- 2>err)"
