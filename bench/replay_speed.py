#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a replay costs, and how much of the real run it shows.

    replay_speed.py [--scale S]

Two tables. The first is the player's own cost per call, as its rehearsals find it (docs/replay.md):
the median of five runs, the least and the most. Beside it stand the parts that are timed otherwise
(calls, touching, waiting) and all CPU time; for one thread they should add up, of several the calls
have what they waited for locks in them. Then what a call takes in the file. The second table sets the replay beside
the program: the peak of what is live as the recording has it, and the resident heap of an
unrecorded run, read from /proc/PID/smaps every two milliseconds (all anonymous memory but for
stacks and what the program had before its first allocation); of several threads the median of five.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import workloads

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MSCOPE_BUILD", ROOT / "build/release"))
MALLOSCOPE = str(BUILD / "bin/malloscope")


def heap_rss(pid):
    """Anonymous resident bytes that an allocator may have mapped."""
    total, wanted = 0, False
    try:
        with open(f"/proc/{pid}/smaps") as lines:
            for line in lines:
                if re.match(r"[0-9a-f]+-[0-9a-f]+ ", line):
                    fields = line.split(maxsplit=5)
                    name = fields[5].strip() if len(fields) > 5 else ""
                    wanted = fields[1].startswith("rw") and name in ("", "[heap]")
                elif wanted and line.startswith("Rss:"):
                    total += int(line.split()[1]) << 10
    except OSError:
        pass
    return total


def native_heap(command, env):
    """The highest resident heap of a plain run."""
    program = subprocess.Popen(command, env={**os.environ, **env}, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    highest = 0
    while program.poll() is None:
        highest = max(highest, heap_rss(program.pid))
        time.sleep(0.002)
    return highest


def replay(file, *options):
    out = subprocess.run([MALLOSCOPE, "replay", str(file), "--json", *options], check=True,
                         capture_output=True)
    return json.loads(out.stdout)


def measure(name, command, env, folder, threads):
    trace, work = folder / "replay.mscope", folder / "replay.mwork"
    for path in folder.glob("replay.*"):
        path.unlink()
    subprocess.run([MALLOSCOPE, "run", "--quiet", "-o", str(trace), "--", *command], check=True,
                   stdout=subprocess.DEVNULL, env={**os.environ, **env})
    written = json.loads(subprocess.run([MALLOSCOPE, "workload", str(trace), "-o", str(work), "--json"],
                                        check=True, capture_output=True).stdout)
    peak = json.loads(subprocess.run([MALLOSCOPE, "report", str(trace), "--json"], check=True,
                                     capture_output=True).stdout)["totals"]["peak_bytes"]
    runs = sorted(replay(work, "--repeat", "5")["runs"], key=lambda r: r["player_ns_per_call"])
    least, typical, most = runs[0], runs[len(runs) // 2], runs[-1]
    paced = replay(work, "--pace", "recorded")["runs"][0] if threads > 1 else typical
    # Which arenas threads get is chance: one run in seven had 101 MiB where the others had 83.
    natives = sorted(native_heap(command, env) for _ in range(5 if threads > 1 else 1))
    native = natives[len(natives) // 2]
    mib = 1 << 20
    calls = sum(typical["calls"].values())
    timed = sum(typical[part] for part in ("allocator_ns", "touch_ns", "wait_ns"))
    cost = (f"| {name} | {threads} | {calls:,} | {typical['player_ns_per_call']:.1f}"
            f" ({least['player_ns_per_call']:.1f} to {most['player_ns_per_call']:.1f}) |"
            f" {25 if threads == 1 else 100} | {timed / calls:.1f} | {typical['cpu_ns'] / calls:.1f} |"
            f" {written['workload']['bytes_per_call']:.2f} | 3 |")
    shown = (f"| {name} | {peak / mib:.1f} | {paced['max_ideal_bytes'] / mib:.1f} |"
             f" {100 * (paced['max_ideal_bytes'] / peak - 1):+.1f} % | {native / mib:.1f} |"
             f" {paced['heap_max_rss_bytes'] / mib:.1f} |"
             f" {100 * (paced['heap_max_rss_bytes'] / max(1, native) - 1):+.0f} % |")
    print(cost, shown, sep="\n", file=sys.stderr, flush=True)
    for path in folder.glob("replay.*"):
        path.unlink()
    return cost, shown


def tables(folder, scale=1.0):
    programs = [(w.name, w.command, w.env, 1) for w in workloads.real_programs(folder, scale)
                if w.name in ("sqlite3", "python3", "clang -O1")]
    passing = folder / "passing"
    subprocess.run(["g++", "-O2", "-pthread", "-fno-builtin",
                    str(ROOT / "test/programs/passing.cc"), "-o", str(passing)], check=True)
    programs.append(("4 threads that free each other's", [str(passing), "4", str(int(1_000_000 * scale)), "50000"],
                     {}, 4))
    rows = [measure(*program[:3], folder, program[3]) for program in programs]
    return ["", "## Replay", "", "| program | threads | calls | player, ns a call | must | calls, touching, waiting | CPU |"
            " bytes a call | must |", "|---|---|---|---|---|---|---|---|---|", *(cost for cost, _ in rows), "",
            "| program | peak of live MiB | replayed | | resident heap MiB, unrecorded | replayed | |",
            "|---|---|---|---|---|---|---|", *(shown for _, shown in rows)]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--scale", type=float, default=1.0)
    options = arguments.parse_args()
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    print("\n".join(tables(folder, options.scale)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
