#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --no-follow records the program alone, and its children run as if nothing were there.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet --no-follow -o t.mscope -- sh -c 'env | grep -c LD_PRELOAD; echo done' >out
same "LD_PRELOAD in a child" "$(cat out)" $'0\ndone'
same processes "$(ask t.mscope 'len(r["processes"])')" 1
