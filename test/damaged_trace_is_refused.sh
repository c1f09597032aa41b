#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A trace with a flipped bit, or none at all, is refused: exit 3, in bounded time.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/ends" return >/dev/null
python3 - <<'P'
import random
raw = open("t.mscope", "rb").read()
random.seed(1)
for i in range(60):
    bad = bytearray(raw)
    bad[random.randrange(len(raw))] ^= 1 << random.randrange(8)
    open(f"bad{i}.mscope", "wb").write(bad)
open("bad60.mscope", "wb").write(b"not a trace at all" * 100)
open("bad61.mscope", "wb").write(b"")
P
refused=0
for i in $(seq 0 61); do
  timeout 10 "$malloscope" report bad$i.mscope --json >out 2>err
  code=$?
  case $code in 0) ;; 3) refused=$((refused + 1)); [ -s err ] ||
    fail "bad$i: no message" ;; *) fail "bad$i: exit $code" ;; esac
done
[ $refused -ge 50 ] || fail "only $refused of 62 were refused"
"$malloscope" report no-such-file.mscope 2>/dev/null
same "exit code for a missing file" $? 3
