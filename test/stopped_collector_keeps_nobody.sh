#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# While the collector is stopped, programs start without it and run ends; continued, it completes the
# trace and says who was not recorded.
. "$(dirname "$0")/here.sh"

mkfifo go
record t.mscope sh -c 'read x <go; for i in 1 2 3; do "$0" 3; done; exit 4' "$programs/hello" \
  >out 2>err &
launcher=$!
wait_for 5 collector_of t.mscope >/dev/null || fail "no collector found"
collector=$(collector_of t.mscope)
kill -STOP "$collector"
is_stopped() { grep -q '^State:.T' /proc/"$collector"/status; }
wait_for 5 is_stopped || fail "the collector does not stop"
echo >go
ended() { ! kill -0 $launcher; }
wait_for 30 ended
has_ended=$?
[ $has_ended = 0 ] || kill -CONT "$collector"
wait $launcher
same "exit code" $? 4
[ $has_ended = 0 ] || fail "run did not end while the collector was stopped"
grep -q "kill -CONT $collector" err || fail "not said: $(cat err)"
same "what the children say" "$(tr '\n' ' ' <out)" "hello hello hello "
kill -CONT "$collector" || fail "the collector is gone"
complete() { [ "$(ask t.mscope 'r["trace"]["complete"]')" = True ]; }
wait_for 5 complete || fail "never completed"
says t.mscope 'site("keep", "allocations")' 0
says t.mscope 'sum("the collector was stopped" in n for n in r["notes"])' 3
