#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The planner says who waits for whom. A player built with a race detector performs a program whose
# threads free each other's blocks, some millions of times, and the detector finds nothing; if the
# waits are left out, it does.
. "$(dirname "$0")/here.sh"
rounds=${ROUNDS:-300000}

mkdir -p there/bin there/lib/malloscope
cp "$malloscope" there/bin/
cp "$build/test/malloscope-player-tsan" there/lib/malloscope/malloscope-player ||
  skip "no player with a race detector"
record a.mscope "$programs/passing" 4 "$rounds"
"$malloscope" workload a.mscope -o a.mwork --json >w.json || fail "workload exits with $?"
export TSAN_OPTIONS="halt_on_error=1 log_path=$work/races"
there/bin/malloscope replay a.mwork >out 2>said || fail "$(cat said races* 2>/dev/null | head -40)"
ls races* 2>/dev/null && fail "$(head -40 races*)"

# The detector sees what it should: the same without waiting.
MALLOSCOPE_PLAYER_WITHOUT_WAITS=1 there/bin/malloscope replay a.mwork >out 2>said
ls races* >/dev/null 2>&1 || fail "without waits nobody noticed"
