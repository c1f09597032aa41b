#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# LD_PRELOAD is the only variable that the program finds added, ours first.
. "$(dirname "$0")/here.sh"

env | grep -v '^_=' | sort >before
record t.mscope env | grep -v '^_=' | sort >after
same "what differs" "$(diff before after | grep '^[<>]' | cut -d= -f1)" "> LD_PRELOAD"
LD_PRELOAD=libm.so.6 record u.mscope env | grep '^LD_PRELOAD=' >list
grep -q '^LD_PRELOAD=[^: ]*libmalloscope.so[: ]libm.so.6$' list || fail "$(cat list)"
