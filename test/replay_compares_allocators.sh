#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Debian's allocators beside each other; and whatever cannot be run is one sentence, while the others
# still come.
. "$(dirname "$0")/here.sh"

record a.mscope "$programs/passing" 4 50000 || fail "passing exits with $?"
all=glibc,jemalloc,tcmalloc,mimalloc
"$malloscope" replay a.mscope --allocators $all --repeat 2 --json >r.json || fail "exit $?"
python3 - r.json <<'CHECK' || fail "the four allocators"
import json, sys
r = json.load(open(sys.argv[1]))
runs = r["runs"]
assert len(runs) == 8 and all(run["error"] is None for run in runs)
assert all(run["calls"] == runs[0]["calls"] for run in runs)
for name in ("jemalloc", "tcmalloc", "mimalloc"):
    assert all(name in run["library"] for run in runs if run["allocator"] == name), name
assert r["advice"] and all(run["failed"] == 0 for run in runs)
ideal = r["workload"]["max_ideal_bytes"]
assert all(0.3 * ideal < run["max_ideal_bytes"] < 3 * ideal for run in runs)
CHECK
"$malloscope" replay a.mscope --allocators jemalloc,glibc >out || fail "exit $?"
grep -q "^  jemalloc \* " out && grep -q "^\* The reference" out ||
  fail "which is the reference? $(cat out)"
same "references" "$(grep -c " \* " out)" 1
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
