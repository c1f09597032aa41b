#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# More live threads than the recorder has room for: the program runs as if alone, and what is
# missing is counted to the last call, says a counter in the same process.
. "$(dirname "$0")/here.sh"

"$programs/thread_churn" live 6000 >native || skip "this machine does not give us 6,000 threads"
mkdir counter
COUNTER_DIR=$work/counter LD_PRELOAD=$build/test/libcounter.so \
  record t.mscope "$programs/thread_churn" live 6000 >out
same "exit code" $? 0
diff native out || fail "the program notices"
counted=$(PYTHONPATH=$root/test python3 -B -c 'if True:
  import counter
  print(sum(image[call] for image in counter.images("counter") for call in counter.CALLS))')
[ "$counted" -gt 60000 ] || fail "the counter has seen $counted calls"
says t.mscope 'r["recorder"]["lost"] > 0' True
says t.mscope 'r["recorder"]["lost"] + sum(calls.values())' "$counted"
