#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the player calls, recorded in its turn, is what the program had called: the same functions and
# sizes in the same order, thread by thread.
. "$(dirname "$0")/here.sh"

round_trip() { # PROGRAM ARGUMENTS...
  record a.mscope "$@" >out || fail "$1 exits with $?"
  "$malloscope" workload a.mscope -o a.mwork --force >said || fail "workload exits with $?"
  "$malloscope" workload a.mwork --dump >a.ops || fail "dump exits with $?"
  record b.mscope "$malloscope" replay a.mwork -o r.json --force >said ||
    fail "replay exits with $?: $(cat said)"
  # The sum of what is live, to the byte, if nobody else could have been ahead.
  /usr/bin/python3 -c '
import json
r = json.load(open("r.json"))
one = r["workload"]["threads"] > 1 or r["runs"][0]["max_ideal_bytes"] == r["workload"]["max_ideal_bytes"]
assert one, (r["workload"], r["runs"])' || fail "$*: another peak"
  player=$("$malloscope" info b.mscope --json | /usr/bin/python3 -c '
import json, sys
print([p["pid"] for p in json.load(sys.stdin)["processes"] if "player" in p["executable"]][0])') ||
    fail "the player was not recorded"
  "$malloscope" workload b.mscope --process "$player" --dump >b.ops || fail "dump exits with $?"
  python3 - a.ops b.ops <<'COMPARE' || fail "$* is not replayed as it was"
import collections, sys

def threads(path):
    """Of each thread its calls, blocks numbered in the order of their birth on any thread."""
    tracks, current = [], None
    for line in open(path):
        track, name, *rest = line.split()
        if current != track or name == "next_thread":
            tracks.append([])
            current = track
        if name in ("malloc", "calloc", "realloc"):
            tracks[-1].append((name, int(rest[1])))
        elif name in ("memalign", "aligned_alloc", "posix_memalign"):
            tracks[-1].append((name, int(rest[1]), int(rest[2])))
        elif name == "free":
            tracks[-1].append(("free", bool(rest)))
    return tracks

wanted, got = threads(sys.argv[1]), threads(sys.argv[2])
calls = lambda all: collections.Counter(c for t in all for c in t)
extra, missing = calls(got) - calls(wanted), calls(wanted) - calls(got)
# The player's own: a new thread's table is asked for by pthread_create, and a thread that ends
# frees what it never had, some eight times (libc's buffers of a thread).
own = sum(n for c, n in extra.items() if c[0] == "calloc")
nothing = sum(n for c, n in extra.items() if c == ("free", False))
if missing or own + nothing != sum(extra.values()) or own > len(wanted) or nothing > 8 * len(wanted):
    sys.exit(f"missing {missing}, extra {extra}")
# Calls like these left out on both sides, every thread has its own list again.
def lists(all):
    return sorted(kept for t in all if (kept := [c for c in t if c not in extra]))
sys.exit(lists(got) != lists(wanted) and "another order")
COMPARE
}

round_trip "$programs/reallocs"
round_trip "$programs/hello" 0
round_trip /usr/bin/python3 -c 'print(sum(len(str(i)) for i in range(20000)))'
round_trip "$programs/passing" 4 20000
round_trip "$programs/passing" 1 20000

# One thread: the sum of what is live is the program's own, to the byte, and runs are all alike.
record p.mscope /usr/bin/python3 -c 'x = [str(i) for i in range(50000)]; del x[::2]'
"$malloscope" replay p.mscope --repeat 2 --json >r.json || fail "replay exits with $?"
"$malloscope" report p.mscope --json >p.json
python3 - r.json p.json <<'COMPARE' || fail "not the same peak"
import json, sys
replay, report = (json.load(open(path)) for path in sys.argv[1:])
runs = replay["runs"]
assert [r["error"] for r in runs] == [None, None]
assert all(r["max_ideal_bytes"] == report["totals"]["peak_bytes"] for r in runs), runs
assert runs[0]["calls"] == runs[1]["calls"]
assert sum(runs[0]["calls"].values()) == replay["workload"]["calls"]
assert all(r["heap_max_rss_bytes"] > r["max_ideal_bytes"] / 2 for r in runs)
assert all(r["cycles"]["malloc"]["p99"] >= r["cycles"]["malloc"]["p50"] > 0 for r in runs)
assert 0 < runs[0]["allocator_ns"] < runs[0]["cpu_ns"]
COMPARE

# The parts of the CPU time are measured each by itself, so they need not add up, but for one thread
# they do. Of several, the player's own is no less.
record o.mscope "$programs/passing" 1 1500000 5000
record q.mscope "$programs/passing" 4 300000 5000
"$malloscope" replay o.mscope --json >o.json && "$malloscope" replay q.mscope --json >q.json ||
  fail "replay exits with $?"
python3 - o.json q.json <<'COMPARE' || fail "the player's own time"
import json, sys
one, four = (json.load(open(path))["runs"][0] for path in sys.argv[1:])
own = one["player_ns_per_call"] * sum(one["calls"].values())
parts = own + one["allocator_ns"] + one["touch_ns"] + one["wait_ns"]
assert 0.6 < parts / one["cpu_ns"] < 1.6, (parts, one)
assert 2 < one["player_ns_per_call"] < 300, one
assert 0.5 * one["player_ns_per_call"] < four["player_ns_per_call"] < 1000, (one, four)
COMPARE

# Where one call in so many is timed, a kind of call of which none was has no time, not 0; nor has
# one that was not called.
record few.mscope "$programs/same_sizes" 2000000
for i in 1 2 3 4 5; do
  "$malloscope" replay few.mscope >out || fail "replay exits with $?"
  grep -Eq "^  calloc +1 +0 " out && fail "a time of 0: $(cat out)"
  /usr/bin/python3 -c '
import json
r = json.load(open("few.mscope.replay.json"))["runs"][0]
nothing = {"mean": None, "p50": None, "p99": None}
assert r["cycles"]["malloc"]["mean"] > 0, r
assert r["calls"]["memalign"] == 0 and r["cycles"]["memalign"] == nothing, r
assert r["calls"]["calloc"] == 1, r
dash = any(line.split()[:3] == ["calloc", "1", "-"] for line in open("out"))
assert dash == (r["cycles"]["calloc"] == nothing), r' || fail "cycles of what was not timed"
  grep -Eq "^  calloc +1 +- +- +- +-" out && exit 0
done
fail "calloc is always timed: $(cat out)"
