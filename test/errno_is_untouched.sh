#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Results and errno of every entry point are libc's own.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/api" >out || fail "$(cat out)"
same stdout "$(cat out)" "api ok"
says t.mscope 'calls["malloc"], calls["calloc"], calls["realloc"], calls["free"]' "(5, 2, 4, 11)"
