#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A slow collector loses nothing: the program waits while its heartbeat moves.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/handover" few_slots 500000 >/dev/null || fail "exit $?"
says t.mscope 'r["recorder"]["lost"]' 0
says t.mscope 'site("hand_over", "allocations")' 2000000
says t.mscope 't["order_violations"]' 0
