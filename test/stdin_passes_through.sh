#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What is piped in reaches the program, byte for byte, and end of file too.
. "$(dirname "$0")/here.sh"

head -c 3000000 /dev/urandom >in
record t.mscope cat <in >out || fail "exit $?"
cmp in out || fail "the bytes differ"
head -c 1000000 in | record u.mscope wc -c >count
same "bytes counted" "$(cat count)" 1000000
