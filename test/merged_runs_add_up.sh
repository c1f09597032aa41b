#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A merged trace has the sum of every total and of every site of the runs it was made of, in
# whatever grouping; the peak is the highest, or with --together that of the sum.
. "$(dirname "$0")/here.sh"

"$malloscope" run -q -o a.mscope -- sqlite3 :memory: \
  "create table t(a); with recursive c(x) as (select 1 union all select x+1 from c where x<3000)
   insert into t select x from c; select count(*) from t;" >/dev/null
"$malloscope" run -q -o b.mscope -- sh -c 'perl -e "my %h = map {\$_ => [1]} 1..2000;" & sqlite3 :memory: "select 1" >/dev/null; wait'
"$malloscope" run -q -o c.mscope -- sqlite3 :memory: "select 2" >/dev/null

merge() { "$malloscope" merge "$@" >/dev/null || fail "merge $* exits with $?"; }
merge a.mscope b.mscope c.mscope -o abc.mscope
merge a.mscope b.mscope -o ab.mscope
merge ab.mscope c.mscope -o ab_c.mscope
merge b.mscope c.mscope -o bc.mscope
merge a.mscope bc.mscope -o a_bc.mscope
merge c.mscope a.mscope -o ca.mscope
merge b.mscope ca.mscope -o b_ca.mscope
merge a.mscope b.mscope c.mscope --together -o together.mscope
merge a.mscope a.mscope -o twice.mscope
merge a.mscope a.mscope --together -o both.mscope

for trace in *.mscope; do
  "$malloscope" report "$trace" --json >"$trace.json" || fail "report of $trace"
  "$malloscope" info "$trace" --json >"$trace.info" || fail "info of $trace"
  "$malloscope" leaks "$trace" --json --no-default-suppressions >"$trace.leaks" || fail "leaks of $trace"
done

python3 - <<'JUDGE' || fail "sums differ"
import collections, json, sys

def load(name, kind="json"):
    return json.load(open(f"{name}.mscope.{kind}"))

def figures(r):
    """All that adds up, by name; sites by function and line."""
    f = collections.Counter()
    for key, value in r["totals"].items():
        if not key.startswith("peak"): f["totals", key] = value
    for key, value in r["calls"].items(): f["calls", key] = value
    for key, value in r["mappings"].items():
        if isinstance(value, int): f["mappings", key] = value
    for key in ("events", "lost", "threads", "stacks", "truncated_stacks", "unwind_failures", "not_followed"):
        f["recorder", key] = r["recorder"][key]
    f["processes"] = len(r["processes"])
    for s in r["sites"]:
        for key in ("allocations", "reallocations", "allocated_bytes", "live_bytes", "live_blocks",
                    "temporary", "stacks"):
            f["site", s["function"], s["file"], s["line"], s["module"], key] += s[key]
    return +f

def leaks(r):
    f = collections.Counter()
    for l in r["leaks"]:
        f[l["function"], l["file"], l["line"]] += l["bytes"]
    f["blocks"] = r["totals"]["blocks"]
    return +f

def judge(what, got, wanted):
    for key in sorted(set(got) | set(wanted), key=str):
        if got[key] != wanted[key]: sys.exit(f"{what}: {key} is {got[key]}, should be {wanted[key]}")

runs = [load(n) for n in "abc"]
assert all(r["totals"]["allocations"] > 100 for r in runs)
wanted = sum((figures(r) for r in runs), collections.Counter())
held = sum((leaks(load(n, "leaks")) for n in "abc"), collections.Counter())
for name in ("abc", "ab_c", "a_bc", "b_ca", "together"):
    merged = load(name)
    judge(name, figures(merged), wanted)
    judge(name + ", leaks", leaks(load(name, "leaks")), held)
    assert merged["trace"]["complete"], name
    peaks = [r["totals"]["peak_bytes"] for r in runs]
    peak = merged["totals"]["peak_bytes"]
    if name == "together":
        assert max(peaks) <= peak <= sum(peaks), (peaks, peak)
    else:
        assert peak == max(peaks), (name, peaks, peak)
    assert sum(s["peak_bytes"] for s in merged["sites"]) == peak, name
judge("twice", figures(load("twice")), figures(runs[0]) + figures(runs[0]))
# Within a tick nobody knows what came first, so it may be a little less than the double.
both, one = (r["totals"]["peak_bytes"] for r in (load("both"), runs[0]))
assert 1.9 * one < both <= 2 * one, (both, one)

# Every image as it was, and where it came from.
images = [p for n in "abc" for p in load(n, "info")["processes"]]
info = load("ab_c", "info")
for then, now in zip(images, info["processes"], strict=True):
    for key in ("pid", "parent", "command", "executable", "exit", "lost", "origin", "ended_by_exec"):
        assert then[key] == now[key], (key, then[key], now[key])
    for key in ("allocations", "live_bytes", "peak_bytes"):
        assert then["totals"][key] == now["totals"][key], key
    assert len(then["modules"]) == len(now["modules"])
assert [r["file"] for r in info["runs"]] == ["a.mscope", "b.mscope", "c.mscope"], info["runs"]
first = 1
for run, name in zip(info["runs"], "abc"):
    assert run["first_image"] == first
    first += run["images"]
    assert run["images"] == len(load(name, "info")["processes"])
JUDGE

# Every other verb reads it as well.
"$malloscope" report abc.mscope >page || fail "no page"
grep -q '3 recordings' page || fail "the page does not say that there are three"
"$malloscope" check abc.mscope --max-peak 1G >/dev/null || fail "check"
"$malloscope" diff a.mscope abc.mscope >/dev/null || fail "diff"
"$malloscope" export abc.mscope --format folded --metric allocations -o f.txt >/dev/null || fail "export"

# What cannot be merged: a sentence, an exit code, and nothing left behind.
refused() { # CODE WORDS ARGUMENTS...
  local code=$1 words=$2
  shift 2
  "$malloscope" merge "$@" >out 2>err
  same "exit code of merge $*" $? "$code"
  [ "$(wc -l <err)" = 1 ] && grep -q "$words" err || fail "merge $*: $(cat err)"
  ls ./*.part 2>/dev/null && fail "merge $* left a file"
}
refused 2 "one of the traces" a.mscope b.mscope -o b.mscope --force
refused 2 "exists already" a.mscope b.mscope -o abc.mscope
cp page precious
refused 2 "precious is not a trace" a.mscope b.mscope -o precious --force
cmp page precious || fail "what was no trace was replaced"
refused 2 "output is required" a.mscope b.mscope
refused 2 "is not a file" a.mscope -o /dev/null --force
refused 3 "cannot read no.mscope" a.mscope no.mscope -o new.mscope
refused 3 "not a Malloscope trace" a.mscope page -o new.mscope
refused 3 "cannot be written" a.mscope b.mscope -o no/such/folder.mscope
cp a.mscope bad.mscope
printf 'x' | dd of=bad.mscope bs=1 seek=$(($(stat -c %s bad.mscope) / 2)) conv=notrunc 2>/dev/null
refused 3 "damaged" b.mscope bad.mscope -o new.mscope
[ -e new.mscope ] && fail "a refused merge wrote its output"
before=$(sha256sum abc.mscope)
refused 3 "damaged" b.mscope bad.mscope -o abc.mscope --force
same "the trace that was there" "$(sha256sum abc.mscope)" "$before"

# A cut input: counted up to the cut, and said.
head -c $(($(stat -c %s a.mscope) * 2 / 3)) a.mscope >cut.mscope
"$malloscope" merge cut.mscope c.mscope -o half.mscope >/dev/null 2>err || fail "a cut trace is refused"
grep -q "not complete: cut.mscope" err || fail "a cut input is not told: $(cat err)"
"$malloscope" info half.mscope 2>/dev/null | grep -q "not complete: cut.mscope" || fail "info does not tell of the cut"
same "allocations with a cut input" "$(ask half.mscope 't["allocations"]' 2>/dev/null)" \
  "$(($(ask cut.mscope 't["allocations"]' 2>/dev/null) + $(ask c.mscope 't["allocations"]')))"
