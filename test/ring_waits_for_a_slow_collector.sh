#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A slow collector loses nothing: the program waits while its heartbeat moves.
. "$(dirname "$0")/here.sh"

"$malloscope" run --quiet -o t.mscope -- "$programs/handover" few_slots 500000 >/dev/null || fail "exit $?"
same "lost" "$(ask t.mscope 'r["recorder"]["lost"]')" 0
same allocations "$(ask t.mscope 'site("hand_over", "allocations")')" 2000000
same "order violations" "$(ask t.mscope 'r["totals"]["order_violations"]')" 0
