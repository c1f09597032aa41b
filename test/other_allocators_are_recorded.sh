#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# jemalloc, tcmalloc and mimalloc, linked or preloaded.
. "$(dirname "$0")/here.sh"

for a in jemalloc:libjemalloc.so.2 tcmalloc:libtcmalloc_minimal.so.4 mimalloc:libmimalloc.so.2.0; do
  name=${a%:*} library=/usr/lib/x86_64-linux-gnu/${a#*:}
  [ -e $library ] || continue
  record l.mscope "$programs/hello_$name" 2 >out
  same "exit code, linked $name" $? 2
  says l.mscope 'site("keep", "allocations"), site("churn", "temporary")' "(1000, 1000)"
  LD_PRELOAD=$library record p.mscope "$programs/hello" 2 >out
  same "exit code, preloaded $name" $? 2
  says p.mscope 'site("keep", "allocations"), site("churn", "temporary")' "(1000, 1000)"
  record h.mscope "$programs/handover_$name" few_slots 50000 >out || fail "$name: exit $?"
  says h.mscope 'site("hand_over", "allocations"), t["order_violations"]' "(200000, 0)"
done
