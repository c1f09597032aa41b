#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --no-follow records the program alone, and its children run as ever.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet --no-follow -o t.mscope -- sh -c '"$0" 3; echo $?' "$programs/hello" >out
same "the child" "$(cat out)" $'hello\n3'
says t.mscope 'len(processes)' 1
