#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LD_PRELOAD=libmalloscope.so without the command records too.
. "$(dirname "$0")/here.sh"

LD_PRELOAD=$recorder "$programs/hello" 3 >out 2>err
same "exit code" $? 3
same stdout "$(cat out)" hello
same stderr "$(cat err)" ""
there() { ls malloscope.hello.*.mscope >/dev/null; }
wait_for 5 there || fail "no trace: $(ls)"
trace=$(ls malloscope.hello.*.mscope)
complete() { [ "$(ask "$trace" 'r["trace"]["complete"]')" = True ]; }
wait_for 5 complete || fail "not completed"
says "$trace" 'site("keep", "allocations")' 1000
says "$trace" 'processes[0]["exit"]' "{'code': 3}"
LD_PRELOAD=$recorder "$programs/alone" all >out && "$programs/alone" all >native
diff native out || fail "the program notices"
