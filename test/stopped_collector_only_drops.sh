#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A stopped collector delays the program by 0.1 s, no more; what is dropped is counted.
. "$(dirname "$0")/here.sh"

cat >busy.c <<'C'
#include <stdlib.h>
#include <unistd.h>
int main(void) {
  sleep(2);
  for (long i = 0; i < 20000000; ++i) free(malloc(24 + i % 8));
  return write(1, "done\n", 5) != 5;
}
C
gcc -O1 -fno-builtin busy.c -o busy || fail "busy.c"
record t.mscope ./busy >out &
launcher=$!
wait_for 5 collector_of t.mscope >/dev/null || fail "no collector found"
collector=$(collector_of t.mscope)
kill -STOP "$collector"
wait_for 15 grep -q 'done' out
ended=$?
kill -CONT "$collector"
wait $launcher
same "exit code" $? 0
[ $ended = 0 ] || fail "the program did not end while the collector was stopped"
says t.mscope 'abs(r["recorder"]["lost"] + sum(calls.values()) - 40000000) < 1000' True
says t.mscope 'r["recorder"]["lost"] > 0' True
