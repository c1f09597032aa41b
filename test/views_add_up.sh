#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever a view lists adds up to the totals of `report --json`, on real programs; and so do the
# metrics lifetime and overhead, however they are grouped.
. "$(dirname "$0")/here.sh"

# The highest moment is early, so that a range behind it has one of its own.
record py.mscope /usr/bin/python3.11 -c 'print(len([str(i) * 50 for i in range(50000)])); print(sum(len(str(i)) for i in range(200000)))' >/dev/null
record sql.mscope sqlite3 :memory: "create table t(a, b); with recursive c(x) as (select 1 union all
  select x + 1 from c where x < 5000) insert into t select x, x || 'abc' from c; select count(*) from t;" >/dev/null
record demo.mscope "$build/bin/malloscope-demo" >/dev/null

for trace in py sql demo; do
  for range in "" "--from 30% --to 80%" "--from 80%"; do
    [ $trace = demo ] && [ "$range" ] && continue  # Ten million events: once is enough.
    [ $trace = sql ] && [ "$range" = "--from 80%" ] && continue  # It has ended by then.
    "$malloscope" report $trace.mscope --json $range >report.json || fail "report of $trace: exit $?"
    for view in peak lifetimes sizes threads growth churn rss mappings pages; do
      "$malloscope" report $trace.mscope --view $view --json $range >$view.json || fail "$view: exit $?"
      [ $trace = sql ] || continue
      "$malloscope" report $trace.mscope --view $view $range >text || fail "$view as text: exit $?"
      [ "$(head -n 1 text)" ] || fail "$view: the first line is not the answer"
    done
    [ $trace = demo ] || {
      "$malloscope" report $trace.mscope --view peak --at 50% --json >at.json
      "$malloscope" report $trace.mscope --to 50% --json >to.json
    }
    for metric in lifetime overhead; do
      [ $trace = demo ] && break
      "$malloscope" report $trace.mscope --metric $metric --by site --json $range >$metric.site.json
      "$malloscope" report $trace.mscope --metric $metric --by thread --json $range >$metric.thread.json
      "$malloscope" report $trace.mscope --metric $metric --stacks --json $range >$metric.stacks.json
      "$malloscope" report $trace.mscope --metric $metric --tree --json $range >$metric.tree.json
      "$malloscope" report $trace.mscope --metric $metric --json $range >$metric.functions.json
    done
    python3 - $trace <<'CHECK' || fail "$trace $range"
import json, sys
bad = 0
def load(name): return json.load(open(name + ".json"))
def same(what, got, wanted):
    global bad
    if got != wanted:
        bad += 1
        print(f"{what}: {got}, should be {wanted}")
def total(rows, key): return sum(row[key] for row in rows)
r = load("report")
t = r["totals"]
for view in "peak lifetimes sizes threads growth churn rss mappings pages".split():
    for key, value in load(view)["totals"].items():
        same(f"{view}: totals.{key}", value, t[key])
peak = load("peak")
same("peak", total(peak["sites"], "peak_bytes"), t["peak_bytes"])
same("peak by site", sorted(s["peak_bytes"] for s in peak["sites"]),
     sorted(s["peak_bytes"] for s in r["sites"] if s["peak_bytes"]))
same("at 50%", total(load("at")["sites"], "live_bytes"), load("to")["totals"]["live_bytes"])
same("at 50%, blocks", total(load("at")["sites"], "live_blocks"), load("to")["totals"]["live_blocks"])
lives = load("lifetimes")
same("lifetimes by site", total(lives["sites"], "blocks"), t["allocations"])
same("lifetimes, histogram", total(lives["histogram"], "blocks"), t["allocations"])
sizes = load("sizes")
for table in "sizes", "classes":
    for key in "allocations reallocations allocated_bytes live_bytes live_blocks peak_bytes".split():
        same(f"{table}, {key}", total(sizes[table], key), t[key])
for key in "allocations", "reallocations", "allocated_bytes":
    same(f"slices, {key}", total(sizes["slices"], key), t[key])
same("the last slice", sizes["slices"][-1]["live_bytes"], t["live_bytes"])
threads = load("threads")
for key in "allocations", "allocated_bytes", "live_bytes":
    same(f"threads, {key}", total(threads["threads"], key), t[key])
same("own and others' frees", total(threads["threads"], "own_frees") +
     total(threads["threads"], "frees_of_others"), t["frees"])
same("the matrix", total(threads["matrix"], "frees"), t["frees"])
growth = load("growth")
for key in "chains", "growths", "copied_bytes":
    same(f"growth, {key}", total(growth["sites"], key), growth[key])
churn = load("churn")
same("churn, allocations", total(churn["sites"], "allocations"), t["allocations"])
same("churn, temporary", total(churn["sites"], "temporary"), t["temporary"])
rss = load("rss")
same("rss, parts", total(rss["parts"], "bytes"), rss["peak_rss"]["bytes"])
if len(r["processes"]) == 1:
    same("rss, the highest slot", max(s["requested_bytes"] for s in rss["slots"]), t["peak_bytes"])
    if r["rss"]["peak_bytes"] < rss["peak_rss"]["bytes"]: same("peak rss", rss["peak_rss"], r["rss"])
mappings = load("mappings")
same("mappings", total(mappings["sites"], "mapped_bytes"), r["mappings"]["mapped_bytes"])
same("still mapped", total(mappings["sites"], "still_mapped_bytes"), mappings["still_mapped_bytes"])
pages = load("pages")
for key in "live_bytes", "live_blocks":
    same(f"pages, {key}", total(pages["sites"], key), t[key])
if not total(pages["sites"], "pages") >= pages["pages"] >= pages["live_bytes"] / 4096: same("pages", pages["pages"], "less")
for metric in ("lifetime", "overhead") if sys.argv[1] != "demo" else ():
    sums = {total(load(f"{metric}.{g}")[f"{g}s"], metric) for g in ("site", "thread")}
    sums.add(total(load(f"{metric}.stacks")["stacks"], metric))
    sums.add(total(load(f"{metric}.functions")["functions"], "self"))
    sums.add(sum(row["cumulative"] for row in load(f"{metric}.tree")["tree"] if row["depth"] == 0))
    # Rows of threads are rounded to nanoseconds one by one.
    if max(sums) - min(sums) > 1000 or max(sums) == 0: same(metric, sums, "one number")
sys.exit(bad > 0)
CHECK
  done
done

# The shop's journal grows without a reserve, its clerks' letters and lists of keys do too.
python3 - <<'CHECK' || fail "the demo's growing vectors were not found"
import json
sites = json.load(open("growth.json"))["sites"]
journal = next(s for s in sites if "Journal::append" in s["function"])
assert journal["chains"] == 1 and journal["growths"] >= 20 and journal["element_bytes"] == 16, journal
assert journal["reserve_elements"] * 16 == journal["largest_bytes"] >= 2 ** 24, journal
keys = next(s for s in sites if "::sell(" in s["function"])
assert keys["chains"] == 360000 and keys["instead"] == "reserve(8)", keys
CHECK

for wrong in "--view nonsense" "--view sizes --at 50%" "--view rss --focus x" "--view mappings --min-size 9" \
  "--at 50%" "--view peak --at 50% --to 60%" "--view peak --at never" "--view peak --tree" "--view peak --sort x"; do
  "$malloscope" report sql.mscope $wrong >out 2>err
  same "exit code of '$wrong'" $? 2
  same "'$wrong': lines of complaint" "$(wc -l <err)" 1
done
