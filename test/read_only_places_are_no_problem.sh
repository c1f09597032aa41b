#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A read-only /tmp and home: the trace goes where it was asked for.
. "$(dirname "$0")/here.sh"

[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || skip "only root can make /tmp read-only"
mkdir out_here
cat >inside.sh <<'S'
mount --bind out_here /mnt && mount --bind /tmp /tmp && mount -o remount,ro,bind /tmp || exit 77
cd /mnt && "$1" run --quiet -o /mnt/t.mscope -- "$2/ends" exit >/mnt/out
S
unshare -m sh inside.sh "$malloscope" "$programs"
code=$?; [ $code = 77 ] && skip "mounting is not permitted"
same "exit code" $code 3
says out_here/t.mscope 'site("keep", "allocations")' 100000
