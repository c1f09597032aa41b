#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A /dev/shm of 1 MiB, or none, is no reason to fail.
. "$(dirname "$0")/here.sh"

[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || skip "only root can mount a small disk"
cat >inside.sh <<'S'
mount -t tmpfs -o size=1m none /dev/shm || exit 77
"$1" run --quiet -o t.mscope -- "$2/ends" exit >out
S
unshare -m sh inside.sh "$malloscope" "$programs"
code=$?; [ $code = 77 ] && skip "mounting is not permitted"
same "exit code" $code 3
says t.mscope 'site("keep", "allocations")' 100000
