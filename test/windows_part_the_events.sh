#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever moment a recording is parted at, each allocation is in one of the two parts.
. "$(dirname "$0")/here.sh"

record fork.mscope "$programs/fork_storm" storm 50 >/dev/null
record threads.mscope "$programs/handover" >/dev/null
record demo.mscope "$build/bin/malloscope-demo" >/dev/null
count() { # TRACE ARGUMENTS...
  "$malloscope" report "$@" --metric allocations --by module --json >part.json || fail "$*: exit $?"
  python3 -c 'import json; print(sum(m["allocations"] for m in json.load(open("part.json"))["modules"]))'
}
for trace in fork threads demo; do
  all=$(count $trace.mscope)
  for moment in 0.1% 7% 26% 33% 50.05% 93% peak; do
    same "$trace, parted at $moment" \
      $(($(count $trace.mscope --to $moment) + $(count $trace.mscope --from $moment))) "$all"
  done
done

# What is live at the peak is the peak, to the byte, though many events share its tick.
live() { # ARGUMENTS...
  "$malloscope" "$@" --json >live.json || fail "$*: exit $?"
  python3 -c 'import json; r = json.load(open("live.json"))
print(sum(x["live_bytes"] for x in r["modules"]) if "modules" in r else sum(x["peak_bytes"] for x in r["sites"]))'
}
for trace in threads demo; do
  peak=$(ask $trace.mscope 't["peak_bytes"]')
  for index in never always; do
    export MALLOSCOPE_INDEX=$index
    same "$trace: live at the peak" "$(live report $trace.mscope --metric live --by module --to peak)" "$peak"
    same "$trace: --at peak" "$(live report $trace.mscope --view peak --at peak)" "$peak"
  done
  unset MALLOSCOPE_INDEX
  "$malloscope" leaks $trace.mscope --no-default-suppressions --to peak --json >live.json || fail "leaks: $?"
  same "$trace: leaks at the peak" \
    "$(python3 -c 'import json; print(json.load(open("live.json"))["totals"]["bytes"])')" "$peak"
  "$malloscope" diff $trace.mscope --from start --to peak --json >live.json || fail "diff: $?"
  same "$trace: diff up to the peak" \
    "$(python3 -c 'import json; print(sum(x["is"] for x in json.load(open("live.json"))["sites"]))')" "$peak"
done

# With a beginning, live is what was allocated since: what leaks say, and exports.
for moment in 10% 50% peak; do
  since=$(live report demo.mscope --metric live --by module --from $moment)
  "$malloscope" leaks demo.mscope --no-default-suppressions --from $moment --json >live.json || fail "leaks: $?"
  same "live since $moment" "$since" \
    "$(python3 -c 'import json; print(json.load(open("live.json"))["totals"]["bytes"])')"
  same "live since $moment, exported" "$since" "$("$malloscope" export demo.mscope --format folded --metric live \
    --from $moment -o - | awk '{s += $NF} END {printf "%d", s}')"
  [ "$since" -lt "$(ask demo.mscope 't["live_bytes"]')" ] || fail "live since $moment is all that is live"
done
"$malloscope" report demo.mscope --metric live --from 50% >out || fail "live: $?"
grep -q 'blocks allocated after ' out || fail "a profile of live does not say since when: $(head -1 out)"
"$malloscope" report demo.mscope --from 50% --json | python3 -c '
import json, sys
r = json.load(sys.stdin)
assert abs(r["range"]["from_ns"] / r["trace"]["duration_ns"] - 0.5) < 1e-3, r["range"]
assert r["range"]["to_ns"] == r["trace"]["duration_ns"], r["range"]' || fail "the JSON does not tell its range"

# Who allocates nothing has his peak at the start.
echo 'int main(void) { return 0; }' | gcc -x c - -o nothing || fail "gcc"
record nothing.mscope ./nothing
same "allocations of nothing" "$(ask nothing.mscope 't["allocations"]')" 0
for window in "--to peak" "--from peak" "--from peak --to peak" "--from start --to peak"; do
  "$malloscope" report nothing.mscope --metric live --by site $window >out 2>&1 ||
    fail "$window of nothing: $(cat out)"
done
