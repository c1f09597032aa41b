#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast a long trace is read, how little memory that takes, and how peers do on the same program.

    report_speed.py [--millions N] [--peer-millions N] [--stacks-log2 N] [--keep]

The program is paths.cc, the worst case: its stacks come up equally often. `run.py` has the table at
its end. Readers run on one core; CPU is what they used, which a busy machine disturbs less than
the wall clock.
"""
import argparse
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import workloads

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MSCOPE_BUILD", ROOT / "build/release"))
MALLOSCOPE = os.environ.get("MALLOSCOPE", str(BUILD / "bin/malloscope"))
HEAPTRACK_INTERPRET = "/usr/lib/heaptrack/libexec/heaptrack_interpret"
JEMALLOC = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"

SECOND_QUESTIONS = [
    ("by function", ["--metric", "allocated"]),
    ("by thread", ["--by", "thread"]),
    ("by log2 size", ["--by", "size"]),
    ("a tree", ["--tree"]),
    ("stacks with a function", ["--metric", "allocated", "--focus", "left"]),
    ("a slice of the time", ["--metric", "allocated", "--from", "40%", "--to", "41.3%"]),
    ("most of the time", ["--metric", "peak", "--from", "10.1%", "--to", "90.7%"]),
]


MOST_CPU_SECONDS = 120


def measure(command, env=None):
    """(wall s, CPU s, MiB) of a command on one core, which is given up after some minutes."""
    def prepare():
        os.sched_setaffinity(0, {0})
        resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU_SECONDS, MOST_CPU_SECONDS))
    began = time.monotonic()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                             env={**os.environ, **(env or {})}, preexec_fn=prepare)
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode in (-signal.SIGXCPU, -signal.SIGKILL):
        return "given up", f"more than {MOST_CPU_SECONDS}", used.ru_maxrss / 1024
    if child.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: exit {child.returncode}")
    return time.monotonic() - began, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def build_paths(folder):
    program = folder / "paths"
    subprocess.run(["g++", "-O2", "-g", "-std=c++20", str(workloads.HERE / "paths.cc"), "-o",
                    str(program)], check=True)
    return str(program)


def remove(trace):
    for path in (trace, pathlib.Path(f"{trace}.index")):
        path.unlink(missing_ok=True)


def record(trace, command, env=None):
    remove(trace)
    subprocess.run([MALLOSCOPE, "run", "--quiet", "--force", "-o", str(trace), "--", *command],
                   check=True, stdout=subprocess.DEVNULL, env={**os.environ, **(env or {})})


def row(*cells):
    text = "| " + " | ".join(c if isinstance(c, str) else f"{c:.2f}" if c < 100 else f"{c:.0f}"
                             for c in cells) + " |"
    print(text, file=sys.stderr, flush=True)  # It takes long.
    return text


def large(folder, program, millions, depth, keep):
    trace = folder / "long.mscope"
    if not (keep and trace.exists()):
        record(trace, [program, str(millions * 125_000), str(depth)])
    else:
        pathlib.Path(f"{trace}.index").unlink(missing_ok=True)
    lines = [row("question", "wall s", "CPU s", "MiB", "must"), "|---|---|---|---|---|"]
    report = [MALLOSCOPE, "report", str(trace)]
    lines.append(row("the page, without an index",
                     *measure(report, {"MALLOSCOPE_INDEX": "never"}), "40 s, 2048 MiB"))
    lines.append(row("the page, and an index is made",
                     *measure(report, {"MALLOSCOPE_INDEX": "always"}), "40 s, 2048 MiB"))
    for name, words in [("the page again", [])] + SECOND_QUESTIONS:
        lines.append(row(name, *measure(report + words, {"MALLOSCOPE_INDEX": "always"}), "3 s"))
    size, index = trace.stat().st_size, os.path.getsize(f"{trace}.index")
    lines += ["", f"{millions} million events, {2 ** (depth + 2):,} distinct stacks;"
              f" trace {size >> 20} MiB, index {index >> 20} MiB."]
    if not keep:
        remove(trace)
    return lines


def peers(folder, name, command, env):
    """The flat profile of the whole run, by each tool that is there, from its own recording."""
    lines = []

    def add(reader, figures):
        lines.append(row(name, reader, *figures))

    trace = folder / "peer.mscope"
    record(trace, command, env)
    ours = [MALLOSCOPE, "report", str(trace), "--metric", "allocated"]
    cache = {"XDG_CACHE_HOME": str(folder / "cache")}
    shutil.rmtree(folder / "cache", ignore_errors=True)
    add("malloscope report, first time", measure(ours, {"MALLOSCOPE_INDEX": "never", **cache}))
    # heaptrack looks names up while it records; this is what its reader is to be compared with.
    add("malloscope report, names known", measure(ours, {"MALLOSCOPE_INDEX": "never", **cache}))
    measure(ours, {"MALLOSCOPE_INDEX": "always", **cache})
    add("malloscope report, from the index", measure(ours, {"MALLOSCOPE_INDEX": "always", **cache}))
    for old in folder.glob("peer.*"):
        old.unlink()
    quiet = {"check": True, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if shutil.which("heaptrack"):
        subprocess.run(["heaptrack", "--raw", "-o", str(folder / "peer.heaptrack"), *command],
                       env={**os.environ, **env}, **quiet)
        raw, ready = next(folder.glob("peer.heaptrack.raw*")), folder / "peer.ready.zst"
        add("heaptrack_interpret, as a rule while it records",
            measure(["sh", "-c", f"zstd -dc {raw} | {HEAPTRACK_INTERPRET} | zstd -qc > {ready}"]))
        add("heaptrack_print", measure(["heaptrack_print", "-f", str(ready)]))
    if shutil.which("jeprof") and os.path.exists(JEMALLOC):
        conf = f"prof:true,prof_accum:true,lg_prof_sample:0,prof_final:true,prof_prefix:{folder}/peer.je"
        subprocess.run(command, env={**os.environ, **env, "LD_PRELOAD": JEMALLOC, "MALLOC_CONF": conf},
                       **quiet)
        found = next(folder.glob("peer.je*"))
        add("jeprof --text", measure(["jeprof", "--text", "--alloc_space", command[0], str(found)]))
    for old in folder.glob("peer.*"):
        old.unlink()
    shutil.rmtree(folder / "cache", ignore_errors=True)
    return lines


def tables(folder, millions=100, peer_millions=8, depth=18, keep=False):
    program = build_paths(folder)
    scale = peer_millions / 8
    programs = [("paths, a million stacks", [program, str(int(peer_millions * 125_000)), str(depth)], {}),
                ("storm", [str(workloads.build_storm(folder)), "1", str(int(4_000_000 * scale))], {})]
    programs += [(w.name, w.command, w.env) for w in workloads.real_programs(folder, scale)
                 if w.name in ("python3", "sqlite3")]
    lines = ["", "## Reading a long trace", "", *large(folder, program, millions, depth, keep), "",
             "## The same work in peers", "", "A flat profile of all that was allocated.", "",
             row("program", "reader", "wall s", "CPU s", "MiB"), "|---|---|---|---|---|"]
    for name, command, env in programs:
        lines += peers(folder, name, command, env)
    return lines + ["", "igprof-analyse is not in Debian 12. heaptrack looks names up and matches frees"
                    " with allocations in heaptrack_interpret, so heaptrack_print has less to do than"
                    " malloscope report."]


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--millions", type=int, default=100)
    arguments.add_argument("--peer-millions", type=float, default=8)
    arguments.add_argument("--stacks-log2", type=int, default=20)
    arguments.add_argument("--keep", action="store_true", help="the long trace, for the next time")
    options = arguments.parse_args()
    folder = BUILD / "bench"
    folder.mkdir(parents=True, exist_ok=True)
    print("\n".join(tables(folder, options.millions, options.peer_millions,
                           options.stacks_log2 - 2, options.keep)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
