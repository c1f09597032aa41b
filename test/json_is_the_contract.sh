#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Every key that programs may rely on is there, with the right type.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/fork" plain >/dev/null
"$malloscope" report t.mscope --json >report.json || fail "report: exit $?"
"$malloscope" info t.mscope --json >info.json ||
  fail "exit $?"
python3 - <<'P' || exit 1
import json
r, i = json.load(open("report.json")), json.load(open("info.json"))
def has(what, where, keys, kinds=int):
    for key in keys.split():
        assert key in where, f"{what} has no {key}"
        assert isinstance(where[key], kinds), f"{what}.{key} is {where[key]!r}"
assert r["malloscope"] and i["malloscope"]
has("trace", r["trace"], "complete", bool)
for p in r["processes"]:
    has("process", p, "image pid")
    has("process", p, "parent", (int, type(None)))
    has("process", p, "command", (str, list))
    assert p["exit"] is None or p["exit"].keys() <= {"code", "signal"}
has("totals", r["totals"], "allocations reallocations frees inherited_frees allocated_bytes"
    " freed_bytes live_bytes live_blocks peak_bytes peak_time_ns temporary failed unmatched_frees"
    " order_violations")
has("calls", r["calls"], "malloc calloc realloc reallocarray memalign aligned_alloc posix_memalign"
    " valloc pvalloc new new_array new_aligned new_array_aligned free free_sized"
    " free_aligned_sized cfree delete delete_array delete_aligned delete_array_aligned"
    " mmap munmap mremap brk sbrk")
has("rss", r["rss"], "peak_bytes")
has("recorder", r["recorder"], "events lost truncated_stacks unwind_failures threads stacks"
    " modules trace_bytes")
has("recorder", r["recorder"], "bytes_per_event", (int, float))
for s in r["sites"]:
    has("site", s, "function module", str)
    has("site", s, "file", (str, type(None)))
    has("site", s, "line", (int, type(None)))
    has("site", s, "allocations allocated_bytes peak_bytes live_bytes live_blocks temporary")
    assert s["function"] and s["stack"]
    for f in s["stack"]:
        has("frame", f, "function module", str)
        assert f["function"] and {"file", "line"} <= f.keys()
assert r["sites"] and r["totals"]["peak_time_ns"] > 0
print("ok")
P
"$malloscope" report t.mscope --json --top 2 >top.json
same "--top 2" "$(python3 -c 'import json; print(len(json.load(open("top.json"))["sites"]))')" 2

# No object has a key twice.
for question in "" "--by size" "--by site" "--stacks" "--tree" "--callers"; do
  for metric in "" "--metric allocations" "--metric temporary" "--metric lifetime"; do
    "$malloscope" report t.mscope --json $question $metric >q.json || fail "$question $metric: $?"
    python3 - "$question $metric" <<'P' || exit 1
import json, sys
def once(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), (sys.argv[1], keys)
    return dict(pairs)
json.load(open("q.json"), object_pairs_hook=once)
P
  done
done

# Times of rows add up to the same, whatever they are rows of.
whole=
for by in function site module thread size; do
  "$malloscope" report t.mscope --json --metric lifetime --by $by >q.json || fail "--by $by: $?"
  sum=$(python3 - $by <<'P'
import json, sys
by = sys.argv[1]
print(sum(r["self" if by == "function" else "lifetime"] for r in json.load(open("q.json"))[by + "s"]))
P
  )
  same "lifetime by $by" "$sum" "${whole:=$sum}"
done
[ "$whole" -gt 0 ] || fail "nothing lived"
