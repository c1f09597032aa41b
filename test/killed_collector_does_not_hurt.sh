#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The collector is killed: the program goes on, ends as ever, and run says so.
. "$(dirname "$0")/here.sh"

record t.mscope sh -c 'sleep 2; exec "$0" 5' "$programs/hello" >out 2>err &
launcher=$!
wait_for 5 collector_of t.mscope >/dev/null || fail "no collector found"
kill -9 "$(collector_of t.mscope)"
wait $launcher
same "exit code" $? 5
same stdout "$(cat out)" hello
[ -s err ] || fail "nothing was said about it"
