#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# When run returns, nothing of it goes on: no process, no folder, no shared memory.
. "$(dirname "$0")/here.sh"

export TMPDIR=$work/tmp XDG_RUNTIME_DIR=$work/tmp
mkdir tmp && ls /dev/shm >shm.before
for way in return kill segv; do record $way.mscope "$programs/ends" $way >/dev/null; done
empty() { [ -z "$(ls tmp)" ]; }
wait_for 3 empty || fail "left behind: $(find tmp)"
ls /dev/shm | diff shm.before - || fail "left in /dev/shm"
for p in /proc/[0-9]*; do
  { tr '\0' '\n' <"$p/cmdline"; } 2>/dev/null | grep -qx "return.mscope" && fail "still running: $p"
done
exit 0
