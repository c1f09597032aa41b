#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever ends a replay, its player ends too.
. "$(dirname "$0")/here.sh"

player() { # Of this test: its folder is nobody else's.
  for p in /proc/[0-9]*; do
    case "$(readlink "$p/exe")" in */malloscope-player) ;; *) continue ;; esac
    [ "$(readlink "$p/cwd")" = "$work" ] && return
  done
  return 1
}
no_player() { ! player; }

record a.mscope /usr/bin/python3 -S -c 'import time; x = [str(i) for i in range(1000)]; time.sleep(3)'
for signal in TERM HUP KILL; do
  "$malloscope" replay a.mscope --pace recorded >out 2>said &
  replay=$!
  wait_for 10 player || fail "no player: $(cat said)"
  kill -$signal $replay
  wait $replay 2>/dev/null
  wait_for 2 no_player || fail "after $signal the player goes on"
done
