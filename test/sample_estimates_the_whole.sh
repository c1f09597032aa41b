#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A sampled recording estimates what the whole one counts, of every site, and says that it does; large
# blocks are all in it; the program does what it does alone; and what needs every call refuses.
. "$(dirname "$0")/here.sh"
export NO_COLOR=1

cat >busy.cc <<'P'
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
static const int kThreads = 3;
static char* kept[kThreads][4000];
__attribute__((noinline)) static char* small_kept(int i) { return static_cast<char*>(malloc(40 + i % 50)); }
__attribute__((noinline)) static void small_brief(int i) { char* volatile p = static_cast<char*>(malloc(16 + i % 300)); free(p); }
__attribute__((noinline)) static void two_at_once(int i) {
  char* volatile p = static_cast<char*>(malloc(100 + i % 10));
  char* volatile q = static_cast<char*>(malloc(100));
  free(p), free(q);
}
__attribute__((noinline)) static void* large() { return malloc(1 << 20); }
__attribute__((noinline)) static void grows() {
  char* p = nullptr;
  for (size_t n = 16; n <= 16384; n *= 2) p = static_cast<char*>(realloc(p, n));
  free(p);
}
int main() {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([t] {
      for (int i = 0; i < 200000; ++i) {
        small_brief(i);
        if (i % 50 == 0) kept[t][i / 50] = small_kept(i);
        if (i % 10 == 0) two_at_once(i);
        if (i % 100 == 0) grows();
      }
      for (int i = 0; i < 1000; ++i) free(kept[t][i]);  // The others are left.
    });
  for (auto& thread : threads) thread.join();
  void* volatile blocks[10];
  for (int i = 0; i < 10; ++i) blocks[i] = large();
  for (int i = 0; i < 9; ++i) free(blocks[i]);
  puts("done");
}
P
c++ -g -O1 -fno-builtin -no-pie busy.cc -o busy -pthread || fail "busy.cc"
record whole.mscope ./busy >out || fail "exit $?"
"$malloscope" report whole.mscope --json >whole.json || fail "exit $?"
for round in 1 2 3; do
  "$malloscope" run --quiet --sample 4K -o "sample$round.mscope" -- ./busy >sampled || fail "exit $?"
  cmp -s out sampled || fail "the program does something else when it is sampled"
  "$malloscope" report "sample$round.mscope" --json >"sample$round.json" || fail "exit $?"
done
python3 - <<'P' || fail "see above"
import json, math, sys
whole = json.load(open("whole.json"))
samples = [json.load(open(f"sample{i}.json")) for i in (1, 2, 3)]
def of(report, function, key):
    return sum(s[key] for s in report["sites"] if s["function"].split("(")[0] == function)
bad = []
# For each figure: the relative standard error of one sample, from the number of blocks in it.
def near(what, truth, found, blocks_recorded):
    error = truth / math.sqrt(blocks_recorded)
    mean = sum(found) / len(found)
    if abs(mean - truth) > 5 * error / math.sqrt(len(found)):
        bad.append(f"{what}: {truth}, estimated {found}")
for function, size, counts in (("small_kept", 64, ("allocations", "allocated_bytes", "live_bytes", "live_blocks")),
                               ("small_brief", 170, ("allocations", "allocated_bytes", "temporary")),
                               ("two_at_once", 102, ("allocations", "allocated_bytes", "temporary"))):
    for key in counts:
        truth = of(whole, function, key)
        assert truth > 0, (function, key)
        # Blocks of that site are drawn about once in 4096 / size.
        blocks = of(whole, function, "live_blocks" if "live" in key else "allocations") * size / 8192
        near(f"{function} {key}", truth, [of(s, function, key) for s in samples], blocks)
# Of two blocks at once only the second is temporary, though the one after the first is mostly not in the sample.
assert of(whole, "two_at_once", "temporary") * 2 == of(whole, "two_at_once", "allocations")
for s in samples:
    if (of(s, "large", "allocations"), of(s, "large", "live_bytes")) != (10, 1 << 20):
        bad.append("large blocks are not all there")
    t = s["totals"]
    if t["unmatched_frees"] or t["order_violations"] or t["reallocations"]:
        bad.append(f"totals: {t}")
    if t["allocations"] - t["frees"] != t["live_blocks"] or t["allocated_bytes"] - t["freed_bytes"] != t["live_bytes"]:
        bad.append(f"a sample does not add up: {t}")
    if sum(x["live_bytes"] for x in s["sites"]) != t["live_bytes"]:
        bad.append("sites do not add up")
    if not any("sample" in n for n in s["notes"]):
        bad.append("the notes do not say that it is a sample")
    if s["recorder"]["events"] * 8 > whole["recorder"]["events"]:
        bad.append(f"too much is recorded: {s['recorder']['events']} of {whole['recorder']['events']}")
# A realloc is a free and an allocation there: all steps count whole.
steps = 3 * 2000 * sum(2 ** k for k in range(4, 15))
near("grows", steps, [of(s, "grows", "allocated_bytes") for s in samples], steps / 8192)
if len({json.dumps(s["totals"]) for s in samples}) == 1:
    bad.append("three samples are the same")
print("\n".join(bad))
sys.exit(bool(bad))
P

# Said wherever there are figures.
sample=sample1.mscope
"$malloscope" report "$sample" | grep -q "Only a sample was recorded" || fail "the page does not say it"
"$malloscope" report "$sample" --metric allocated --by site | tr -s ' \n' ' ' | grep -q "Only a sample was recorded" || fail "a profile does not say it"
"$malloscope" leaks "$sample" | tr -s ' \n' ' ' | grep -q "Only a sample was recorded" || fail "leaks do not say it"
"$malloscope" info "$sample" | grep -q "sample" || fail "info does not say it"
"$malloscope" diff "$sample" whole.mscope | tr -s ' \n' ' ' | grep -q "In $sample: Only a sample" || fail "diff does not say it of the older"
"$malloscope" diff whole.mscope "$sample" | tr -s ' \n' ' ' | grep -q "In $sample: Only a sample.*In a sample a realloc" || fail "diff does not say what differs"
"$malloscope" history whole.mscope "$sample" | grep -q "1 recording is a sample" || fail "history does not say it"
"$malloscope" history whole.mscope "$sample" --json | python3 -c 'import json, sys; assert [r["sample_bytes"] for r in json.load(sys.stdin)["runs"]] == [None, 4096]' ||
  fail "history --json"
# That nothing was seen proves nothing; an estimate can be held against a limit.
"$malloscope" run --quiet --sample 1M -o none.mscope -- true
"$malloscope" check none.mscope --max-live 0 >/dev/null 2>&1; same "check of what was not seen" $? 3
"$malloscope" check "$sample" --max-live 1G >/dev/null 2>&1; same "check of an estimate" $? 0
for view in lifetimes sizes threads churn growth pages rss; do
  "$malloscope" report "$sample" --view $view >/dev/null || fail "--view $view: exit $?"
done

# What needs every call says so.
refused() { # EXIT WORDS... : with a sentence about samples
  local wanted=$1; shift
  "$malloscope" "$@" >/dev/null 2>errors
  same "$*" $? "$wanted"
  grep -qi "sample" errors || fail "$*: $(cat errors)"
}
refused 2 export "$sample" --format heaptrack -o t.heaptrack
refused 2 replay "$sample" --allocators glibc
refused 2 merge "$sample" whole.mscope -o merged.mscope
refused 2 run --sample 4K --time-calls -- true
refused 2 run --sample 1000 -- true
refused 2 run --sample 4G -- true
"$malloscope" merge sample1.mscope sample2.mscope -o merged.mscope || fail "two samples do not merge"
says merged.mscope "t['allocations']" "$(($(ask sample1.mscope "t['allocations']") + $(ask sample2.mscope "t['allocations']")))"
"$malloscope" export "$sample" --format folded --metric allocated -o t.folded || fail "folded"
same "folded" "$(awk '{ sum += $NF } END { printf "%d", sum }' t.folded)" "$(ask "$sample" "t['allocated_bytes']")"

# Programs that fork, exec, jump and are interrupted.
for program in "fork 20" "hot_signals 200" "jumps 200" "thread_churn 50" "reallocs 2000" "newdel 100"; do
  set -- $program
  "$programs/$1" "$2" >alone 2>&1; code=$?
  "$malloscope" run --quiet --force --sample 256 -o odd.mscope -- "$programs/$1" "$2" >sampled 2>&1
  same "$program: exit code" $? $code
  cmp -s alone sampled || fail "$program does something else when it is sampled"
  says odd.mscope "t['order_violations'], t['unmatched_frees'], r['recorder']['lost']" "(0, 0, 0)"
done
