#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An allocator inside the program is out of reach, and that is said.
. "$(dirname "$0")/here.sh"

"$malloscope" run -o t.mscope -- "$programs/own_malloc" >out 2>err
same "exit code" $? 42
same stdout "$(cat out)" "own malloc"
grep -qi 'alloc' err || fail "not said: $(cat err)"
