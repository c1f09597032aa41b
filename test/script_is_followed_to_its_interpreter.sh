#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A #! script is its interpreter's program.
. "$(dirname "$0")/here.sh"

printf '#!/bin/sh\necho from a script\n"%s" 5\n' "$programs/hello" >script && chmod +x script
record t.mscope ./script >out
same "exit code" $? 5
same stdout "$(cat out)" $'from a script\nhello'
says t.mscope 'site("keep", "allocations")' 1000
