#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What recording costs, side by side with peers.

    run.py [-n RUNS] [--quick] [--only NAME] [--tools a,b] [--scale S] [--no-file]

`--only reports` for reading long traces (report_speed.py) alone, `--only replay` for replay_speed.py, `--only viewer` for
viewer_speed.py.

Every round runs every tool once, in turn, so that a slow phase of the machine
meets all of them; medians are printed. jemalloc with every allocation sampled
is so slow that it runs once. The program is on core 0 and whatever
helps it is free to use the other (the storms use both). A tool that recorded
nothing is an error, not a fast tool.
"""
import argparse
import ctypes
import datetime
import json
import math
import operator
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import time

import replay_speed
import report_speed
import viewer_speed
import workloads

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MSCOPE_BUILD", ROOT / "build/release"))
MALLOSCOPE = os.environ.get("MALLOSCOPE", str(BUILD / "bin/malloscope"))
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

# What is off by default has rows of its own.
OURS = {"malloscope": [], "free-stacks": ["--free-stacks"], "time-calls": ["--time-calls"], "cpu": ["--cpu"]}


class Measured:
    """One run: seconds of wall and CPU (tree: with all helpers), KiB of RSS, bytes written."""

    def __init__(self, wall, tree, cpu, rss, size):
        self.wall, self.tree, self.cpu, self.rss, self.size = wall, tree, cpu, rss, size


def compile_helpers(folder):
    for name in ("pin", "forward"):
        subprocess.run(["gcc", "-O2", "-shared", "-fPIC", str(workloads.HERE / f"{name}.c"), "-o",
                        str(folder / f"lib{name}.so")], check=True)


def command_of(tool, workload, folder, output):
    """The command line and the environment that runs a workload under a tool."""
    program = os.path.realpath(workload.command[0])
    preload = [str(folder / "libpin.so")]
    env = {**os.environ, **workload.env, "PIN_PROGRAM": program,
           "PIN_CORE": "0" if workload.cores == 1 else "", "PIN_RESULT": str(folder / "pinned")}
    command = list(workload.command)
    if tool == "forward":
        preload.insert(0, str(folder / "libforward.so"))
    elif tool in OURS:
        command = [MALLOSCOPE, "run", "--quiet", "--force", *OURS[tool], "-o", str(output), "--",
                   *command]
    elif tool == "heaptrack":
        command = ["heaptrack", "-o", str(output), *command]
    elif tool == "jemalloc-all":
        preload.insert(0, JEMALLOC)
        env["MALLOC_CONF"] = f"prof:true,lg_prof_sample:0,prof_final:true,prof_prefix:{output}"
    env["LD_PRELOAD"] = ":".join(preload)
    return command, env


def measure(tool, workload, folder):
    """Runs once. A process of its own waits, as subreaper, for all that the tool leaves behind."""
    output = folder / f"out.{tool}"
    for old in folder.glob(f"out.{tool}*"):
        old.unlink()
    (folder / "pinned").unlink(missing_ok=True)
    command, env = command_of(tool, workload, folder, output)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER
        began = time.monotonic()
        done = subprocess.run(command, env=env, stdin=subprocess.DEVNULL, capture_output=True)
        wall = time.monotonic() - began
        try:
            while True:
                os.wait()
        except ChildProcessError:
            pass
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        os.write(writer, json.dumps([done.returncode, wall, used.ru_utime + used.ru_stime,
                                     done.stderr[-300:].decode(errors="replace")]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        code, wall, tree, err = json.loads(pipe.read())
    os.waitpid(pid, 0)
    if code != 0:
        raise RuntimeError(f"{workload.name} under {tool}: exit {code}: {err}")
    pinned = [[float(x) for x in line.split()] for line in open(folder / "pinned")]
    cpu, rss = sum(p[0] for p in pinned), max(p[1] for p in pinned)
    size = sum(f.stat().st_size for f in folder.glob(f"out.{tool}*"))
    return Measured(wall, tree, cpu, rss, size)


def look_inside(tool, folder):
    """How many allocations and other calls the last recording holds, and how long that took."""
    began = time.monotonic()
    if tool in OURS:
        done = subprocess.run([MALLOSCOPE, "report", str(folder / f"out.{tool}"), "--json",
                               "--top", "20"], capture_output=True, check=True)
        seconds = time.monotonic() - began
        answer = json.loads(done.stdout)
        totals = answer["totals"]
        if answer["recorder"]["lost"] or not answer["trace"]["complete"]:
            raise RuntimeError(f"lost {answer['recorder']['lost']} events")
        return totals["allocations"], totals["frees"] + totals["reallocations"], seconds
    if tool == "heaptrack":
        trace = next(folder.glob("out.heaptrack*"))
        done = subprocess.run(["heaptrack_print", "-f", str(trace)], capture_output=True)
        seconds = time.monotonic() - began
        calls = re.search(rb"calls to allocation functions: (\d+)", done.stdout)
        return int(calls[1]) if calls else 0, 0, seconds
    if tool == "jemalloc-all":
        return sum(1 for _ in folder.glob("out.jemalloc-all*")), 0, 0.0
    return 1, 0, 0.0


def calibrate():
    """Seconds for a fixed loop: how fast the machine is at this moment."""
    began = time.monotonic()
    x = 0
    for i in range(2_000_000):
        x ^= i
    return time.monotonic() - began


def median(runs, key):
    return statistics.median(getattr(r, key) for r in runs)


def against(runs, native, key, how=operator.truediv):
    """Round by round, so that a machine that changes its pace between them does no harm."""
    return statistics.median(how(getattr(r, key), getattr(n, key)) for r, n in zip(runs, native))


def geometric_mean(values):
    values = [v for v in values if v and v > 0]
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def measure_all(todo, tools, n, folder):
    """{workload: {tool: ([Measured], allocations, other events, report seconds)}}, and speeds."""
    results, speeds = {}, []
    for w in todo:
        runs = {t: [] for t in tools}
        inside = {}
        for round_ in range(n):
            speeds.append(calibrate())
            for tool in tools:
                if tool == "jemalloc-all" and (round_ > 0 or w.cores > 1):
                    continue  # Ten times as long as all the others together.
                try:
                    runs[tool].append(measure(tool, w, folder))
                    if tool not in inside:
                        inside[tool] = look_inside(tool, folder)
                        if inside[tool][0] == 0:
                            raise RuntimeError(f"{w.name}: {tool} recorded nothing")
                except (RuntimeError, OSError, subprocess.CalledProcessError, StopIteration) as e:
                    print(f"! {w.name}, {tool}: {e}", file=sys.stderr)
            print(f"  {w.name}: round {round_ + 1} of {n}", file=sys.stderr, flush=True)
        results[w.name] = {t: (runs[t], *inside[t]) for t in tools if runs[t] and t in inside}
    return results, speeds


COLUMNS = ("workload", "tool", "wall s", "wall x", "program CPU x", "tree CPU x", "RSS + MiB",
           "ns / allocation", "bytes / event", "report s")


def row(*cells):
    return "| " + " | ".join(c if isinstance(c, str) else "" if c is None else f"{c:.2f}"
                             for c in cells) + " |"


def table(results):
    """The Markdown table, and the ratios that the goals are about."""
    lines = [row(*COLUMNS), "|" + "---|" * len(COLUMNS)]
    ratios = {}
    for name, by_tool in results.items():
        if "native" not in by_tool:
            continue
        native = by_tool["native"][0]
        _, allocations, others, _ = by_tool.get("malloscope", (0, 0, 0, 0))
        for tool, (runs, _, _, seconds) in by_tool.items():
            r = {key: against(runs, native, key) for key in ("wall", "cpu", "tree")}
            r["added"] = against(runs, native, "wall", operator.sub)
            if allocations and tool != "native":
                r["ns"] = against(runs, native, "cpu", operator.sub) / allocations * 1e9
            if allocations and tool in (*OURS, "heaptrack"):
                r["bytes"] = median(runs, "size") / (allocations + others)
            if allocations and tool == "malloscope":
                helper = median(runs, "tree") - median(runs, "cpu")
                r["collected"] = (allocations + others) / max(helper, 1e-3) / 1e6
                r["read"] = (allocations + others) / seconds / 1e6 if seconds else None
            ratios.setdefault(tool, {})[name] = r
            lines.append(row(name, tool, median(runs, "wall"), r["wall"], r["cpu"], r["tree"],
                             against(runs, native, "rss", operator.sub) / 1024, r.get("ns"), r.get("bytes"),
                             seconds or None))
    return lines, ratios


def goals(ratios, real):
    """The figures that were promised, next to what was measured."""
    if "malloscope" not in ratios:
        return []
    ours = ratios["malloscope"]
    real = [name for name in real if name in ours]
    wall = [ours[n]["wall"] for n in real]
    lines = ["", "| goal | must | measured |", "|---|---|---|"]
    if wall:
        lines.append(f"| wall, worst real program | <= 1.35 | {max(wall):.2f} |")
        lines.append(f"| wall, geometric mean | <= 1.20 | {geometric_mean(wall):.2f} |")
        lines.append(f"| CPU of the tree, geometric mean | <= 1.6 |"
                     f" {geometric_mean([ours[n]['tree'] for n in real]):.2f} |")
    if "heaptrack" in ratios:
        shares = [max(ours[n]["added"], 1e-3) / ratios["heaptrack"][n]["added"] for n in real
                  if n in ratios["heaptrack"] and ratios["heaptrack"][n]["added"] > 0]
        lines.append(f"| time added against heaptrack's, geometric mean | <= 0.125 |"
                     f" {geometric_mean(shares):.3f} |")
        cpu = [max(ours[n]["cpu"] - 1, 1e-3) / (ratios["heaptrack"][n]["cpu"] - 1) for n in real
               if n in ratios["heaptrack"] and ratios["heaptrack"][n]["cpu"] > 1]
        lines.append(f"| the same in the program's CPU, which a busy machine disturbs less | |"
                     f" {geometric_mean(cpu):.3f} |")
    if "storm, 2 threads" in ours:
        lines.append(f"| storm, 2 threads | <= 2.5 | {ours['storm, 2 threads']['wall']:.2f} |")
    if {"storm, 1 thread", "storm, 4 threads"} <= ours.keys():
        lines.append("| storm, CPU of a call in 4 threads against 1 | <= 1.1 |"
                     f" {ours['storm, 4 threads']['cpu'] / ours['storm, 1 thread']['cpu']:.2f} |")
    if "storm, 1 thread" in ours:
        lines.append("| million events a second of the collector's CPU, storm | >= 20 |"
                     f" {ours['storm, 1 thread']['collected']:.0f} |")
        lines.append("| million events a second that report reads, storm | >= 5 |"
                     f" {ours['storm, 1 thread']['read']:.1f} |")
    sizes = [r["bytes"] for r in ours.values() if r.get("bytes")]
    if sizes:
        lines.append(f"| bytes an event, worst | <= 4.5 | {max(sizes):.2f} |")
    return lines


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("-n", type=int, default=5)
    arguments.add_argument("--quick", action="store_true", help="one round")
    arguments.add_argument("--only", action="append", default=[])
    arguments.add_argument("--tools", default="native,forward,malloscope,free-stacks,time-calls,cpu,"
                           "heaptrack,jemalloc-all")
    arguments.add_argument("--scale", type=float, default=1.0)
    arguments.add_argument("--no-file", action="store_true")
    options = arguments.parse_args()
    n = 1 if options.quick else options.n
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    compile_helpers(folder)
    tools = [t for t in options.tools.split(",")
             if t in ("native", "forward") or shutil.which(t)
             or (t in OURS and os.path.exists(MALLOSCOPE))
             or (t == "jemalloc-all" and os.path.exists(JEMALLOC))]
    real = workloads.real_programs(folder, options.scale)
    todo = [w for w in real + workloads.storms(folder, options.scale)
            if not options.only or any(o in w.name for o in options.only)]
    results, speeds = measure_all(todo, tools, n, folder)
    speeds = speeds or [calibrate()]
    lines, ratios = table(results)
    lines += goals(ratios, [w.name for w in real])
    if not options.only or "reports" in options.only:
        lines += report_speed.tables(folder, max(1, int(100 * options.scale)), 8 * options.scale)
    if not options.only or "replay" in options.only:
        lines += replay_speed.tables(folder, options.scale)
    if not options.only or "viewer" in options.only:
        lines += viewer_speed.tables(folder, options.scale, options.scale >= 1 and not options.quick)
    commit = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
                            capture_output=True, text=True).stdout.strip() or "uncommitted"
    today = datetime.date.today().isoformat()
    head = [f"# {today}, {commit}", "",
            f"{n} interleaved rounds; medians of the rounds' ratios; {os.cpu_count()} cores, Linux {os.uname().release}."
            f" A fixed loop took {min(speeds):.3f} to {max(speeds):.3f} s (median"
            f" {statistics.median(speeds):.3f}) before the rounds: the machine's own noise.", ""]
    print("\n".join(head + lines))
    if not options.no_file:
        out = workloads.HERE / "results" / f"{today}-{commit}.md"
        out.write_text("\n".join(head + lines) + "\n")
        print(f"written to {out}", file=sys.stderr)


if __name__ == "__main__":
    main()
