#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that loads and unloads more libraries than the recorder can tell apart runs on, and
# what comes then is [unknown]: never a library that was there before. The recorder is one built
# for this, with room for 1,024.
. "$(dirname "$0")/here.sh"

mkdir -p bin lib/malloscope
cp "$malloscope" bin/
cp "$build/test/libmalloscope_few_modules.so" lib/malloscope/libmalloscope.so
"$programs/dlclose_reuse" 1000 >native
bin/malloscope run --quiet -o t.mscope -- "$programs/dlclose_reuse" 1000 >out || fail "exit $?"
same "output" "$(cat out)" "$(cat native)"
# The program, libc and the loader take places too.
named='site("allocate_in_[ab]", "live_blocks")'
says t.mscope "10150 <= $named <= 10230" True
says t.mscope "$named + sum(s['live_blocks'] for s in sites if s['module'] == '[unknown]')" 20000
