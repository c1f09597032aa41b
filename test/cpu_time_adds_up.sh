#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With --cpu the CPU time that reports tell is the one that the kernel tells, of all processes
# together; each function has what it measures of itself, also in a thread that never allocates;
# and a program that uses the same signal, or blocks it, notices nothing.
. "$(dirname "$0")/here.sh"

"$malloscope" run -q --cpu -o works.mscope "$programs/busy" works >truth || fail "run: $?"
for by in function thread module; do
  "$malloscope" report works.mscope --metric cpu --by $by --json >$by.json || fail "--by $by: $?"
done
"$malloscope" info works.mscope --json >info.json || fail "info: $?"
python3 - <<'P' || exit 1
import json
truth = {name: int(ns) for name, ns in (line.split() for line in open("truth"))}
functions = json.load(open("function.json"))["functions"]
total = {f["function"]: f["cumulative"] for f in functions}
itself = {f["function"]: f["self"] for f in functions}
# Of a function the share is an estimate: so many samples, each of some milliseconds.
for name in ("heavy", "light", "worker"):
    got = max(ns for function, ns in total.items() if function.split("(")[0] == name)
    assert abs(got - truth[name]) < 0.15 * truth[name] + 20e6, (name, got, truth)
# The sum is not. After it was printed the program does little but end.
sums = [sum(itself.values())] + [
    sum(row["cpu"] for row in next(v for v in json.load(open(f"{by}.json")).values()
                                   if isinstance(v, list) and v and isinstance(v[0], dict)))
    for by in ("thread", "module")]
assert max(sums) == min(sums), sums
assert abs(sums[0] - truth["total"]) < 0.02 * truth["total"] + 10e6, (sums, truth)
P

# A program's own signals, and those it waits for.
for what in own waits resets vforks; do
  "$programs/busy" $what >native || fail "$what natively: $?"
  "$malloscope" run -q --cpu --force -o odd.mscope "$programs/busy" $what >profiled || fail "$what: $?"
  cmp native profiled || fail "$what: $(cat profiled)"
done
"$malloscope" run -q --cpu --force -o odd.mscope "$programs/busy" dies 2>/dev/null
same "death by its own SIGPROF" $? $((128 + 27))

# What a thread computes that blocks the signal is told, but not where.
"$malloscope" run -q --cpu --force -o waits.mscope "$programs/busy" waits >/dev/null || fail "waits: $?"
"$malloscope" report waits.mscope --metric cpu --by function --json >waits.json || fail "report: $?"
python3 - <<'P' || exit 1
import json
functions = json.load(open("waits.json"))["functions"]
assert sum(f["self"] for f in functions) > 330e6, functions
known = sum(f["cumulative"] for f in functions if f["function"].startswith("blocked_work"))
assert known == 0, known
P

# Where nothing was asked for, there is nothing.
record plain.mscope "$programs/busy" own >/dev/null || fail "run: $?"
"$malloscope" report plain.mscope --metric cpu 2>err
same "exit code" $? 2
grep -q 'malloscope run --cpu' err || fail "$(cat err)"
