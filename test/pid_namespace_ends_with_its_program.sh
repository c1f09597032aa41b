#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program in a pid namespace of its own is recorded, and the recording ends with it: a number
# that it knows a process by is nobody's to wait for outside.
. "$(dirname "$0")/here.sh"

unshare -pf true 2>/dev/null || skip "no pid namespace to be had"
record t.mscope unshare -pf "$programs/hello" 5 >out 2>said
same "exit code" $? 5
same "said" "$(cat said)" ""
says t.mscope 'site("keep", "allocations")' 1000
# Its children too, by exec in place and by posix_spawn.
record t.mscope unshare -pf sh -c '"$0" 4; exec "$0" 5' "$programs/hello" >out 2>said
same "exit code" $? 5
same "said" "$(cat said)" ""
says t.mscope 'site("keep", "allocations")' 2000
