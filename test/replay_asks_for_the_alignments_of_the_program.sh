#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace tells which alignment each call asked for, by whichever entry point and recorder, merged
# or not; so an allocator on trial is asked for the same ones.
. "$(dirname "$0")/here.sh"

cat >wanted <<'WANTED'
64 1001
64 1002
2 1003
65536 1004
1048576 5242880
512 1005
256 1280
32768 65536
4096 1006
128 1152
2048 4096
8192 8192
32 1056
128 700
256 101
64 102
16 101
4096 1008
64 67108864
WANTED

asks_for_them() { # TRACE
  export WITNESS=$work/asked
  rm -f asked
  "$malloscope" replay "$1" --allocators "$programs/libwitness.so" --force -o results >out 2>&1 ||
    fail "replay $1: $(cat out)"
  diff asked wanted || fail "what $1 makes replay ask for (see above)"
  "$malloscope" replay "$1" --verify --allocators glibc --force -o results >out 2>&1 ||
    fail "replay --verify $1: $(cat out)"
}

record plain.mscope "$programs/aligned" >/dev/null || fail "run: $?"
"$malloscope" run -q --free-stacks --time-calls -o detailed.mscope "$programs/aligned" >/dev/null ||
  fail "run: $?"
"$malloscope" merge plain.mscope detailed.mscope -o merged.mscope >/dev/null || fail "merge: $?"
for trace in plain detailed merged; do asks_for_them $trace.mscope; done
