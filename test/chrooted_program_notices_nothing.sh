#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that chroots and execs where our folder is not: no word from the loader.
. "$(dirname "$0")/here.sh"

[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || skip "only root can chroot"
case $programs in /tmp/* | /run/*) skip "the jail hides $programs" ;; esac
mkdir jail
cat >inside.sh <<'S'
mount --bind / jail && mount -t tmpfs none jail/tmp && mount -t tmpfs none jail/run || exit 77
[ -e jail/dev/shm ] && mount -t tmpfs none jail/dev/shm
cd / && "$1" run --quiet -o "$3/t.mscope" -- chroot "$3/jail" "$2/hello" 5 >"$3/out" 2>"$3/err"
S
unshare -m sh inside.sh "$malloscope" "$programs" "$work"
code=$?; [ $code = 77 ] && skip "mounting is not permitted"
same "exit code" $code 5
same stdout "$(cat out)" hello
same stderr "$(cat err)" ""
