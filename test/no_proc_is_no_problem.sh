#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Without /proc the program runs and is recorded.
. "$(dirname "$0")/here.sh"

[ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null || skip "only root can take /proc away"
cat >inside.sh <<'S'
umount -l /proc || exit 77
"$1" run --quiet -o t.mscope -- "$2/ends" exit >out
S
unshare -m sh inside.sh "$malloscope" "$programs"
code=$?; [ $code = 77 ] && skip "unmounting is not permitted"
same "exit code" $code 3
says t.mscope 'site("keep", "allocations")' 100000
