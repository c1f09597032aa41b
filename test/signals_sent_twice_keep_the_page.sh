#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Who stops a program often does so twice (timeout does): the page comes all the same.
. "$(dirname "$0")/here.sh"

"$malloscope" run -o t.mscope -- /usr/bin/perl -e 'my @kept = map { "x" x 100 } 1 .. 200000; sleep 60' 2>err &
launcher=$!
wait_for 5 program_of "$launcher" /usr/bin/perl >/dev/null || fail "it did not start"
sleep 0.3
while kill -TERM "$launcher" 2>/dev/null; do :; done
wait "$launcher"
same "exit code" "$?" 143
grep -q "Peak heap" err || fail "no page: $(cat err)"
