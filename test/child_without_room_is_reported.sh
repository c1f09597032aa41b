#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A child that may not map the recorder's memory (ulimit -v) runs as if alone, and it is said.
. "$(dirname "$0")/here.sh"

child='ulimit -v 40000; exec "$0" 5'
sh -c "($child); echo \$?" "$programs/hello" >native 2>&1
"$malloscope" run -o t.mscope -- sh -c "($child) 2>&1; echo \$?" "$programs/hello" >out 2>page
same "exit code" $? 0
same "what the child does" "$(cat out)" "$(cat native)"
same "alone" "$(tr '\n' ' ' <native)" "hello 5 "
says t.mscope 'site("keep", "allocations")' 0
says t.mscope 'r["recorder"]["not_followed"]' 1
"$malloscope" info t.mscope >info || fail "info exits with $?"
grep -q "hello.*could not map the recorder's memory" info || fail "info: $(cat info)"
grep -q "1 child process" page || fail "the page: $(cat page)"
