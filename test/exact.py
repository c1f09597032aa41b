#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts and bytes of real programs equal an independent counter's, to the last call.

    exact.py [--scale S] [NAME...]

The counter stands behind the recorder in the same process: two runs of one
program differ by themselves, one run does not.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

import counter
import product

sys.path.append(str(product.ROOT / "bench"))
import workloads  # noqa: E402


def git(folder):
    """A repository to work in, and commands that fork, exec, and use threads."""
    repository = pathlib.Path(folder) / "repository"
    repository.mkdir()
    for i in range(300):
        (repository / f"file{i}.txt").write_text(f"line {i}\n" * (i + 10))
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.org"]
    subprocess.run(["git", "init", "-q", str(repository)], check=True)
    here = ["/usr/bin/git", "-C", str(repository), *who]
    return [workloads.Workload("git add", [*here, "add", "."]),
            workloads.Workload("git commit", [*here, "commit", "-q", "-m", "all"]),
            workloads.Workload("git gc", [*here, "gc", "-q"]),
            workloads.Workload("git log", [*here, "log", "-p", "--stat"])]


def all_programs(folder, scale):
    programs = [w for w in workloads.real_programs(pathlib.Path(folder) / "inputs", scale)]
    python = next(w for w in programs if w.name == "python3")
    programs.append(workloads.Workload("python3 pymalloc", python.command, {"PYTHONHASHSEED": "0"}))
    script = "import threading, subprocess; [t.start() for t in [threading.Thread(target=" \
             "lambda: subprocess.run(['/bin/echo', 'hello'])) for i in range(8)]]"
    command = ["/usr/bin/python3.11", "-c", script]
    programs.append(workloads.Workload("python3 subprocesses", command))
    return programs + git(folder)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--scale", type=float, default=0.2)
    arguments.add_argument("names", nargs="*")
    options = arguments.parse_args()
    bad = 0
    with tempfile.TemporaryDirectory(prefix="mscope-exact.") as folder:
        for number, w in enumerate(all_programs(folder, options.scale)):
            if options.names and not any(w.name.startswith(n) for n in options.names):
                continue
            counted = pathlib.Path(folder) / f"counted{number}"
            counted.mkdir()
            trace = pathlib.Path(folder) / "t.mscope"
            env = {**os.environ, **w.env, "COUNTER_DIR": str(counted),
                   "LD_PRELOAD": str(product.COUNTER)}
            done = product.profile(w.command, trace, env=env, timeout=300)
            try:
                answer = product.complete_report(trace)
                images = counter.images(counted)
                wrong = counter.differences(answer, counted, threads=w.name in ("git gc", "z3"))
                if done.code != 0:
                    wrong.append(f"exit {done.code}: {product.tail(done.err)}")
                if answer["totals"]["allocations"] < 100:
                    wrong.append("almost nothing was recorded")
                if answer["totals"]["order_violations"]:
                    wrong.append(f"order_violations {answer['totals']['order_violations']}")
                if len(images) > len(answer["processes"]):
                    wrong.append(f"{len(answer['processes'])} images, counter {len(images)}")
                totals = answer["totals"]
                said = f"{len(answer['processes'])} images, {totals['allocations']} allocations, " \
                       f"{totals['allocated_bytes']} bytes"
            except (RuntimeError, KeyError, ValueError) as error:
                wrong, said = [f"{type(error).__name__}: {error}"], ""
            print(f"{'BAD ' if wrong else 'ok  '} {w.name:22} {said}", *wrong, sep="\n     ",
                  flush=True)
            bad += bool(wrong)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
