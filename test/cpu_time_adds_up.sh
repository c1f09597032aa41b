#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With --cpu the CPU time that reports tell is the one that the kernel tells, of all processes
# together; each function has what it measures of itself, also in a thread that never allocates;
# and a program that uses the same signal, or blocks it, notices nothing.
. "$(dirname "$0")/here.sh"

# A kernel that has much to do may look at a thread's timer only now and then, and then one function
# has another's time: so the shares are right in one of a few recordings. Sums are right in all.
for try in 1 2 3 4; do
  "$malloscope" run -q --cpu --force -o works.mscope "$programs/busy" works >truth || fail "run: $?"
  for by in function thread module; do
    "$malloscope" report works.mscope --metric cpu --by $by --json >$by.json || fail "--by $by: $?"
  done
  python3 - >shares <<'P' || exit 1
import json
truth = {name: int(ns) for name, ns in (line.split() for line in open("truth"))}
functions = json.load(open("function.json"))["functions"]
# After it was printed the program does little but end.
sums = [sum(f["self"] for f in functions)] + [
    sum(row["cpu"] for row in json.load(open(f"{by}.json"))[f"{by}s"]) for by in ("thread", "module")]
assert max(sums) == min(sums), sums
assert abs(sums[0] - truth["total"]) < 0.02 * truth["total"] + 10e6, (sums, truth)
for name in ("heavy", "light", "worker"):
    got = sum(f["cumulative"] for f in functions if f["function"].split("(")[0] == name)
    if abs(got - truth[name]) > 0.1 * truth[name] + 10e6:
        print(f"{name} has {got} ns, should be {truth[name]}")
P
  [ -s shares ] || break
done
[ ! -s shares ] || fail "$(cat shares)"

# The same sum in what other tools read.
for format in folded callgrind speedscope csv; do
  "$malloscope" export works.mscope --metric cpu --format $format -o works.$format || fail "$format: $?"
done
python3 - <<'P' || exit 1
import csv, json
wanted = sum(f["self"] for f in json.load(open("function.json"))["functions"])
callgrind = open("works.callgrind").read()
profile, = json.load(open("works.speedscope"))["profiles"]
rows = list(csv.DictReader(open("works.csv")))
sums = {"folded": sum(int(line.rsplit(" ", 1)[1]) for line in open("works.folded")),
        "callgrind": int(callgrind.split("summary: ")[1].split()[0]),
        "speedscope": sum(profile["weights"]),
        "csv": sum(int(row["cpu_ns"]) for row in rows)}
assert set(sums.values()) == {wanted}, (sums, wanted)
P

# A program's own signals, and those it waits for.
for what in own waits resets vforks within small otherwise; do
  "$programs/busy" $what >native || fail "$what natively: $?"
  "$malloscope" run -q --cpu --force -o odd.mscope "$programs/busy" $what >profiled || fail "$what: $?"
  cmp native profiled || fail "$what: $(cat profiled)"
done
"$malloscope" run -q --cpu --force -o odd.mscope "$programs/busy" dies 2>/dev/null
same "death by its own SIGPROF" $? $((128 + 27))

# What was used before an exec is told once; what a thread uses that is alive at the end is told too;
# and whoever unblocks signals has no time but his own.
for what in execs leaves masks; do
  "$malloscope" run -q --cpu --force -o $what.mscope "$programs/busy" $what >truth || fail "$what: $?"
  "$malloscope" report $what.mscope --metric cpu --by function --json >$what.json || fail "report: $?"
  python3 - $what.json <<'P' || fail "$what"
import json, sys
truth = {name: int(ns) for name, ns in (line.split() for line in open("truth"))}
functions = json.load(open(sys.argv[1]))["functions"]
total = sum(f["self"] for f in functions)
assert abs(total - truth["total"]) < 0.03 * truth["total"] + 20e6, (total, truth)
masked = sum(f["cumulative"] for f in functions if f["function"].startswith("masked"))
assert masked <= truth.get("masked", 0) + 0.1 * total, (masked, truth)
P
done

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
