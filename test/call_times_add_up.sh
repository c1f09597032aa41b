#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With --time-calls the time in the allocator is told by site, for the calls that made its blocks and
# those that freed them; without, that it was not recorded.
. "$(dirname "$0")/here.sh"

export LD_PRELOAD=$programs/libslow_malloc.so
"$malloscope" run -q --time-calls -o with.mscope "$programs/slow_calls" || fail "run: $?"
record without.mscope "$programs/slow_calls" || fail "run: $?"
unset LD_PRELOAD

"$malloscope" report with.mscope --metric allocator-time --by site --json >times.json ||
  fail "report: $?"
python3 - <<'P' || exit 1
import json
r = json.load(open("times.json"))
ns = {s["function"]: s["allocator_time"] for s in r["sites"]}
# 50 blocks, each 100 us to make and 100 us to free: that much it took at least.
assert ns["slow_site"] >= 50 * 200_000, ns
assert ns["slow_site"] > 10 * ns["quick_site"], ns
assert 0 < ns["quick_site"], ns
P
# However it is parted, it is the same time; rows are rounded down to nanoseconds.
for by in function site thread size; do
  "$malloscope" report with.mscope --metric allocator-time --by $by --json >$by.json || fail "--by $by: $?"
done
python3 - <<'P' || exit 1
import json
sums = {}
for by in ("function", "site", "thread", "size"):
    r = json.load(open(f"{by}.json"))
    rows = next(v for k, v in r.items() if isinstance(v, list) and v and isinstance(v[0], dict))
    sums[by] = sum(row["self" if by == "function" else "allocator_time"] for row in rows)
    assert len(r["notes"]) == 1 and "went to calls for no block" in r["notes"][0], r["notes"]
assert max(sums.values()) - min(sums.values()) <= 10, sums
P
"$malloscope" report without.mscope --metric allocator-time 2>err
same "exit code" $? 2
grep -q 'malloscope run --time-calls' err || fail "$(cat err)"
