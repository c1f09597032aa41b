#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that is started under soft limits keeps them and is recorded all the same; under hard
# ones that leave no room to record it is not started, and it is said which.
. "$(dirname "$0")/here.sh"

exec 3>&- 4>&-  # What the test was started with must not count.
# Written through a pipe: a limit on file sizes is the program's, and the test's own.
say_limits='for l in f n v t; do ulimit -S$l; ulimit -H$l; done'
for limit in "f 8" "f 0" "n 4" "v 300000" "t 60"; do
  rm -f t.mscope
  native=$(ulimit -S$limit; sh -c "$say_limits")
  same "limits under ulimit -S$limit" "$(ulimit -S$limit; record t.mscope sh -c "$say_limits")" "$native"
  out=$(ulimit -S$limit; record t.mscope "$programs/hello" 5)
  same "exit code under ulimit -S$limit" $? 5
  same "output under ulimit -S$limit" "$out" hello
  says t.mscope 'site("keep", "allocations")' 1000
done

for limit in "f 8" "n 4" "n 12"; do
  rm -f t.mscope
  out=$(ulimit -$limit; record t.mscope "$programs/hello" 5 2>&1)
  same "exit code under ulimit -$limit" $? 2
  case $out in
    *"hello"*) fail "the program was started: $out" ;;
    *"hard limit"*"(ulimit -H${limit% *}) is ${limit#* }"*) ;;
    *) fail "under ulimit -$limit: $out" ;;
  esac
  [ ! -e t.mscope ] || fail "a trace of nothing was left behind"
done

# Preloaded alone, the collector is a child of the program's limits.
out=$(ulimit -Sn 4; LD_PRELOAD=$recorder "$programs/hello" 5)
same "preloaded alone, exit code" $? 5
wait_for 10 sh -c 'ls malloscope.hello.*.mscope' >/dev/null || fail "preloaded alone: no trace"
trace=$(ls malloscope.hello.*.mscope)
complete() { "$malloscope" report "$trace" --json | grep -q '"complete": *true'; }
wait_for 10 complete || fail "preloaded alone: the trace is not complete"
says "$trace" 'site("keep", "allocations")' 1000
