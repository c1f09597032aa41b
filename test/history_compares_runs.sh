#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `history` has a row for each trace of a folder, oldest first, with the figures of report;
# what cannot be read is named; growth beyond a threshold is exit code 1.
. "$(dirname "$0")/here.sh"

mkdir runs
for n in 10 12 11 40; do
  record runs/z$((99 - n)).mscope "$programs/leaky" leaks $n >/dev/null
done
echo "no trace" >runs/broken.mscope
echo "hello" >runs/notes.txt
"$malloscope" history runs --json >history.json || fail "exit $?"
"$malloscope" report runs/z89.mscope --json >report.json
python3 - <<'P' || exit 1
import json
h, r = json.load(open("history.json")), json.load(open("report.json"))
runs = h["runs"]
assert h["malloscope"] == r["malloscope"], h["malloscope"]
assert [x["trace"] for x in runs] == [f"runs/z{99 - n}.mscope" for n in (10, 12, 11, 40)], runs
first, t = runs[0], r["totals"]
for key in ("allocations", "allocated_bytes", "peak_bytes", "live_bytes", "temporary"):
    assert first[key] == t[key], (key, first[key], t[key])
assert first["duration_ns"] == r["trace"]["duration_ns"]
assert first["peak_rss_bytes"] == r["rss"]["peak_bytes"]
assert first["program"] == "leaky" and first["lost"] == 0 and first["complete"] == "yes"
assert len(h["notes"]) == 1 and "broken.mscope" in h["notes"][0], h["notes"]
P
"$malloscope" history runs >text || fail "exit $?"
grep -q '^4 recordings' text || fail "$(cat text)"
grep -q 'broken.mscope' text || fail "the broken one is not named: $(cat text)"
grep -q 'notes.txt' text && fail "$(cat text)"

"$malloscope" history runs --max-growth 15 --metric live >/dev/null 2>err
same "exit code of a run that grew" $? 1
grep -q 'leaky: live is .* % more than the median of 3 runs before .*--max-growth is 15 %' err ||
  fail "$(cat err)"
"$malloscope" history runs --max-growth 1000 --metric live >/dev/null 2>err ||
  fail "below the threshold: exit $?, $(cat err)"
# Each of these, against the one before it, has not grown by more than 20 %.
"$malloscope" history runs/z89.mscope runs/z87.mscope runs/z88.mscope --max-growth 25 \
  --metric allocations >/dev/null || fail "exit $?"
"$malloscope" history runs/z59.mscope --max-growth 0 | grep -q 'nothing to compare with' ||
  fail "a single run is not said to be one"

"$malloscope" merge runs/z87.mscope runs/z88.mscope -o merged.mscope >/dev/null 2>&1 || fail "merge"
"$malloscope" history merged.mscope runs/z89.mscope | grep -q 'merged.mscope is 2 recordings merged' ||
  fail "a merged trace is not said to be one"

# code EXIT SENTENCE ARGUMENTS...
code() {
  local wanted=$1 sentence=$2; shift 2
  "$malloscope" history "$@" >out 2>err
  same "exit code of history $*" $? "$wanted"
  grep -q -- "$sentence" err || fail "$*: says '$(cat err)', not '$sentence'"
}
mkdir empty
code 3 "there is no trace (\*.mscope) in empty" empty
code 3 "none" none
code 3 "broken" runs/broken.mscope
code 2 "--metric" runs --metric weight
code 2 "--max-growth" runs --max-growth -3
code 2 "path" --json
