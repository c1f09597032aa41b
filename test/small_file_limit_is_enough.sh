#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A limit on file sizes leaves less shared memory, not none.
. "$(dirname "$0")/here.sh"

(ulimit -f 1200; "$malloscope" run --quiet -o a.mscope -- "$programs/hello" 5 >out)
same "exit code" $? 5
same allocations "$(ask a.mscope 'site("keep", "allocations")')" 1000
