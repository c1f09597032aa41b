#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# libfaketime, LD_BIND_NOW, ldd and setarch: other users of the loader.
. "$(dirname "$0")/here.sh"

fake=/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1
if [ -e $fake ]; then
  LD_PRELOAD=$fake FAKETIME='2001-02-03 04:05:06' record f.mscope date +%Y >out ||
    fail "faketime: exit $?"
  same "faked year" "$(cat out)" 2001
fi
LD_BIND_NOW=1 record b.mscope "$programs/hello" >out || fail "LD_BIND_NOW: exit $?"
says b.mscope 'site("keep", "allocations")' 1000
record l.mscope ldd /bin/bash >out || fail "ldd: exit $?"
grep -q libc.so.6 out || fail "ldd: $(cat out)"
record r.mscope setarch -R "$programs/hello" >out || fail "setarch: exit $?"
says r.mscope 'site("keep", "allocations")' 1000
