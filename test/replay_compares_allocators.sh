#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's allocators beside each other; and whatever cannot be run is one sentence, while the others
# still come.
. "$(dirname "$0")/here.sh"

record a.mscope "$programs/passing" 4 50000 || fail "passing exits with $?"
all=glibc,jemalloc,tcmalloc,mimalloc
"$malloscope" info a.mscope --json >info.json || fail "exit $?"
"$malloscope" replay a.mscope --allocators $all --repeat 2 --json >r.json || fail "exit $?"
python3 - r.json <<'CHECK' || fail "the four allocators"
import json, os, sys
r = json.load(open(sys.argv[1]))
runs = r["runs"]
assert len(runs) == 8 and all(run["error"] is None for run in runs)
assert all(run["calls"] == runs[0]["calls"] for run in runs)
for name in ("jemalloc", "tcmalloc", "mimalloc"):
    assert all(name in run["library"] for run in runs if run["allocator"] == name), name
assert r["advice"] and all(run["failed"] == 0 for run in runs)
# All that a viewer draws, and what it belongs to.
assert (r["format"], r["version"]) == ("malloscope-replay", 1)
info = json.load(open("info.json"))
trace = r["trace"]
assert trace["bytes"] == info["trace"]["bytes"] == os.path.getsize("a.mscope"), trace
assert trace["events"] == info["recorder"]["events"] > 0, (trace, info["recorder"])
assert trace["started_unix_ns"] == info["trace"]["started_unix_ns"], trace
assert trace["pid"] == info["processes"][trace["image"] - 1]["pid"], trace
assert (trace["from"], trace["to"], trace["threads"]) == (None, None, "recorded")
of = lambda rows, run: [x for x in rows if all(x[k] == run[k] for k in ("allocator", "tunables", "repeat"))]
for run in runs:
    sizes, moments = of(r["cycles_by_size"], run), of(r["over_time"], run)
    for call in ("malloc", "free"):
        rows = [s for s in sizes if s["call"] == call]
        calls = sum(s["calls"] for s in rows)
        assert 0.8 * run["calls"][call] < calls < 1.25 * run["calls"][call], (call, calls, run["calls"])
        mean = sum(s["calls"] * s["mean_cycles"] for s in rows) / calls
        assert abs(mean - run["cycles"][call]["mean"]) < 0.01 * mean, (call, mean, run["cycles"])
        assert all(s["to_bytes"] in (0, 2 * s["from_bytes"] - 1) for s in rows), rows
    assert sum(s["calls"] for s in sizes if s["call"] == "free" and s["from_bytes"] > 0) > 0
    times = [m["time_ns"] for m in moments]
    assert times[0] == 0 and times == sorted(times) and len(times) > 1, times
    assert run["setup_ns"] + run["wall_ns"] < times[-1] * 1.2 + 5e6
    for m in moments:
        ideal = m["ideal_bytes"]
        assert m["fragmentation"] is None if ideal == 0 else abs(m["fragmentation"] * ideal - m["heap_rss_bytes"]) <= 0.01 * m["heap_rss_bytes"], m
    assert any(m["fragmentation"] for m in moments)
ideal = r["workload"]["max_ideal_bytes"]
assert all(0.3 * ideal < run["max_ideal_bytes"] < 3 * ideal for run in runs)
CHECK
"$malloscope" replay a.mscope --allocators jemalloc,glibc >out || fail "exit $?"
grep -q "^  jemalloc \* " out && grep -q "^\* The reference" out ||
  fail "which is the reference? $(cat out)"
tr '\n' ' ' <out | grep -Eq "On jemalloc the allocator takes [0-9.]+ .?s \(all threads together\), (< )?[0-9.]+ % of the [0-9.]+ .?s that" ||
  fail "what is it about? $(cat out)"
same "references" "$(grep -c " \* " out)" 1
# What the program uses already is the reference, and never recommended.
jemalloc=$(find /usr/lib /usr/lib64 -name 'libjemalloc.so.2' -print -quit)
LD_PRELOAD=$jemalloc record je.mscope "$programs/passing" 3 20000
"$malloscope" replay je.mscope --allocators glibc,jemalloc >out || fail "exit $?"
grep -q "^  jemalloc \* " out || fail "which is the reference? $(cat out)"
tr '\n' ' ' <out | grep -q "of process [0-9]* (passing), which uses jemalloc\. " || fail "not said: $(cat out)"
"$malloscope" replay je.mscope --allocators glibc,tcmalloc >out || fail "exit $?"
tr '\n' ' ' <out | grep -q "already uses jemalloc, which is none of these" || fail "not said: $(cat out)"
"$malloscope" replay a.mscope --allocators glibc,tcmalloc >out || fail "exit $?"
grep -q "uses" out && fail "glibc is nothing to talk about: $(cat out)"
"$malloscope" replay a.mscope --allocators $all --verify >said || fail "verify: $(cat said)"
grep -q "4 of 4 allocators passed" said || fail "verify: $(cat said)"

# What is broken is caught, and the other row still comes.
record one.mscope "$programs/passing" 1 20000
for f in overlap:overwritten twice:overwritten misaligned:aligned "dirty:not zero" forgets:lost; do
  fault=${f%%:*}
  BROKEN=$fault "$malloscope" replay one.mscope --allocators glibc,"$programs/libbroken.so" --verify \
    --json >r.json 2>said
  same "exit code, $fault" $? 1
  grep -q "libbroken.so: .*${f#*:}" said || fail "$fault: $(cat said)"
  /usr/bin/python3 -c '
import json
runs = json.load(open("r.json"))["runs"]
assert runs[0]["error"] is None and ("thread" in runs[1]["error"] or "at the end" in runs[1]["error"]), runs' || fail "$fault: $(cat said)"
done
# Also if nothing is freed, so that it shows only at the end.
record same.mscope "$programs/same_sizes"
BROKEN=twice "$malloscope" replay same.mscope --allocators "$programs/libbroken.so" --verify >out 2>said
same "exit code, twice" $? 1
grep -q "overwritten (seen at the end)" said || fail "twice: $(cat said)"
BROKEN= "$malloscope" replay a.mscope --allocators "$programs/libbroken.so" --verify >said ||
  fail "not broken at all, but: $(cat said)"
for fault in crash:crashed exit:ended; do
  BROKEN=${fault%:*} "$malloscope" replay a.mscope --allocators "$programs/libbroken.so",glibc \
    >out 2>said
  same "exit code, $fault" $? 1
  grep -q "${fault#*:}" said || fail "$fault: $(cat said)"
  grep -q glibc out || fail "$fault: no other row"
done

# What one prints is no part of the answer, and what it has started ends with it.
BROKEN=prints "$malloscope" replay a.mscope --allocators "$programs/libbroken.so" --json >r.json 2>said ||
  fail "prints: exit $?"
grep -q noise said && /usr/bin/python3 -c 'import json; json.load(open("r.json"))' || fail "prints: $(head -3 r.json)"
"$malloscope" replay a.mscope --json >r.json 2>&- || fail "without stderr: exit $?"
SECONDS=0
BROKEN=forks "$malloscope" replay a.mscope --allocators "$programs/libbroken.so" 2>&1 | cat >out
same "exit code, forks" ${PIPESTATUS[0]} 0
[ $SECONDS -lt 20 ] || fail "a process that the allocator started goes on"

# One that hangs is ended, at any pace.
for pace in asap x1000000; do
  BROKEN=hang timeout 60 "$malloscope" replay a.mscope --allocators "$programs/libbroken.so",glibc \
    --patience 1500ms --pace $pace >out 2>said
  same "exit code, hang" $? 1
  grep -q "libbroken.so: it made no progress for 1.5.* s after [1-9].* was ended" said ||
    fail "hang: $(cat said)"
  grep -q glibc out || fail "hang: no other row"
done

# What is no allocator, or not there.
echo nothing >text
for a in "/lib/x86_64-linux-gnu/libm.so.6:not an allocator" "text:not a shared library" \
         "/nowhere/x.so:cannot be opened" "umalloc:neither a known"; do
  "$malloscope" replay a.mscope --allocators "${a%%:*}",glibc >out 2>said
  same "exit code, ${a%%:*}" $? 1
  grep -q "${a#*:}" said || fail "${a%%:*}: $(cat said)"
  grep -q glibc out || fail "${a%%:*}: no other row"
done

# What is not there is said first, once, before anything has run; what fails, when it does.
BROKEN=prints "$malloscope" replay a.mscope --repeat 2 \
  --allocators "$programs/libbroken.so",umalloc,/lib/x86_64-linux-gnu/libm.so.6,/nowhere/x.so --json >r.json 2>said
same "exit code, missing ones" $? 1
grep -o "neither a known\|cannot be opened\|not an allocator\|noise" said | uniq | tr '\n' ,  >order
same "what is said" "$(cat order)" "neither a known,cannot be opened,noise,not an allocator,noise,"
same "times that umalloc is said to be missing" "$(grep -c umalloc said)" 1
/usr/bin/python3 -c '
import json
runs = json.load(open("r.json"))["runs"]
assert [bool(run["error"]) for run in runs] == [False] * 2 + [True] * 6, runs' || fail "the rows of missing ones"

# Whose user is in many groups has a long /proc/PID/status.
if [ "$(id -u)" = 0 ]; then
  /usr/bin/python3 -c '
import os, sys
os.setgroups(range(10000, 13000))
os.execv(sys.argv[1], sys.argv[1:])' "$malloscope" replay a.mscope --json >r.json || fail "exit $?"
  /usr/bin/python3 -c '
import json
assert json.load(open("r.json"))["runs"][0]["heap_max_rss_bytes"] > 0' || fail "no memory in many groups"
fi

# Where the kernel does not tell, 0 is no measurement, and each row that has it says so.
LD_PRELOAD=$programs/libno_rss.so "$malloscope" replay one.mscope --allocators glibc,jemalloc >out 2>said ||
  fail "without VmRSS: $(cat said)"
for a in glibc jemalloc; do
  grep -q "^$a: its memory is not known, as /proc/PID/status has no VmRSS; 0 stands for that" out ||
    fail "no word of VmRSS: $(cat out)"
done
"$malloscope" replay one.mscope >out && grep -q VmRSS out && fail "VmRSS is there: $(cat out)"

# As fast as they go, threads that took turns come together, which is said; at the recorded pace, or
# as one thread, they do not.
record turns.mscope "$programs/turns"
"$malloscope" replay turns.mscope >out || fail "exit $?"
grep -q "^As fast as they go, the threads are elsewhere .* where it had 32.0 MiB (+[0-9]* %). --pace recorded" out ||
  fail "another peak is not said: $(cat out)"
for how in "--pace recorded" "--threads 1"; do
  "$malloscope" replay turns.mscope $how >out || fail "exit $?"
  grep -q "elsewhere" out && fail "$how: $(cat out)"
done

# A setting is stronger than what is in the environment.
BROKEN=nothing "$malloscope" replay a.mscope --allocators "$programs/libbroken.so" \
  --tunables BROKEN=crash >out 2>said
same "lines of BROKEN=crash" "$(wc -l <said)" 1
grep -q "BROKEN=crash: it crashed" said || fail "BROKEN=crash: $(cat said)"

# Settings: each combination is a row, and reaches its allocator alone.
"$malloscope" replay a.mscope --allocators glibc,mimalloc --json \
  --tunables 'glibc.malloc.arena_max=1,2 glibc.malloc.mmap_threshold=64K' >r.json || fail "exit $?"
/usr/bin/python3 -c '
import json
runs = json.load(open("r.json"))["runs"]
assert [r["tunables"] for r in runs] == [
    "", "glibc.malloc.arena_max=1 glibc.malloc.mmap_threshold=64K",
    "glibc.malloc.arena_max=2 glibc.malloc.mmap_threshold=64K", ""], runs' || fail "tunables"
