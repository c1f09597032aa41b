#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jemalloc, tcmalloc and mimalloc, linked or preloaded.
. "$(dirname "$0")/here.sh"

for a in jemalloc:libjemalloc.so.2 tcmalloc:libtcmalloc_minimal.so.4 mimalloc:libmimalloc.so.2.0; do
  name=${a%:*} library=/usr/lib/x86_64-linux-gnu/${a#*:}
  [ -e $library ] || continue
  "$malloscope" run --quiet -o l.mscope --force -- "$programs/hello_$name" 2 >out
  same "exit code, linked $name" $? 2
  same "linked $name" "$(ask l.mscope 'site("keep", "allocations"), site("churn", "temporary")')" "(1000, 1000)"
  LD_PRELOAD=$library "$malloscope" run --quiet -o p.mscope --force -- "$programs/hello" 2 >out
  same "exit code, preloaded $name" $? 2
  same "preloaded $name" "$(ask p.mscope 'site("keep", "allocations"), site("churn", "temporary")')" "(1000, 1000)"
  "$malloscope" run --quiet -o h.mscope --force -- "$programs/handover_$name" few_slots 50000 >out || fail "$name: exit $?"
  same "hand-overs on $name" \
    "$(ask h.mscope 'site("hand_over", "allocations"), r["totals"]["order_violations"]')" "(200000, 0)"
done
