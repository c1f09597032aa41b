#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Kills a recorded program with SIGKILL at random instants: no completed call may be missing.

    kills.py COUNT [--seed S]

The program (programs/killed_at_random.c) keeps in a shared file how many calls
it has begun and how many have returned; what was recorded must lie between.
"""
import argparse
import os
import pathlib
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time

import product


def children(pid):
    try:
        return [int(c) for t in os.listdir(f"/proc/{pid}/task")
                for c in pathlib.Path(f"/proc/{pid}/task/{t}/children").read_text().split()]
    except FileNotFoundError:
        return []


def find_program(pid):
    """The recorded program among the descendants of the launcher."""
    for child in children(pid):
        try:
            if os.readlink(f"/proc/{child}/exe").endswith("/killed_at_random"):
                return child
        except OSError:
            continue
    return None


def one_kill(folder, rng):
    """What is wrong after one kill, as a sentence; empty if nothing is. And how many calls."""
    truth, trace = folder / "truth", folder / "t.mscope"
    truth.unlink(missing_ok=True)
    threads = rng.choice([1, 2, 4])
    launcher = subprocess.Popen(
        [product.MALLOSCOPE, "run", "--quiet", "--force", "-o", str(trace), "--",
         str(product.PROGRAMS / "killed_at_random"), str(truth), str(threads)],
        stdout=subprocess.PIPE, start_new_session=True)
    if launcher.stdout.readline() != b"running\n":
        return f"did not start: exit {launcher.wait()}", 0
    program = find_program(launcher.pid)
    if program is None:
        os.killpg(launcher.pid, signal.SIGKILL)
        return "the program is not a child of the launcher", 0
    time.sleep(rng.random() ** 3 * 0.3)
    os.kill(program, signal.SIGKILL)
    try:
        code = launcher.wait(60)
    except subprocess.TimeoutExpired:
        os.killpg(launcher.pid, signal.SIGKILL)
        return "the launcher did not end", 0
    finally:
        launcher.stdout.close()
    raw = truth.read_bytes()
    lanes = [struct.unpack_from("<4Q", raw, 64 * i) for i in range(threads)]
    begun, returned, frees_begun, frees_returned = (sum(column) for column in zip(*lanes))
    report = product.complete_report(trace)
    site = [s for s in report["sites"] if s["function"].startswith("count_on")]
    got, frees = sum(s["allocations"] for s in site), report["totals"]["frees"]
    if code != 128 + 9:
        return f"the launcher exited with {code}", got
    if not report["trace"]["complete"] or report["recorder"]["lost"]:
        return f"complete {report['trace']['complete']}, lost {report['recorder']['lost']}", got
    if not returned <= got <= begun:
        return f"{got} allocations; {returned} had returned, {begun} begun", got
    # Frees of the start-up code are few and come on top.
    if not frees_returned <= frees <= frees_begun + 100:
        return f"{frees} frees; {frees_returned} had returned, {frees_begun} begun", got
    if report["totals"]["order_violations"] or report["totals"]["unmatched_frees"]:
        return "order violations or unmatched frees", got
    return "", got


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("count", type=int, nargs="?", default=50)
    arguments.add_argument("--seed", type=int, default=time.time_ns() & 0xffff)
    options = arguments.parse_args()
    rng = random.Random(options.seed)
    bad, calls = 0, 0
    with tempfile.TemporaryDirectory(prefix="mscope-kills.") as folder:
        for i in range(options.count):
            try:
                wrong, got = one_kill(pathlib.Path(folder), rng)
            except (RuntimeError, KeyError, ValueError) as error:
                wrong, got = f"{type(error).__name__}: {error}", 0
            calls += got
            if wrong:
                bad += 1
                print(f"kill {i}: {wrong}", flush=True)
    print(f"{options.count} kills, {calls} allocations recorded, {bad} wrong (seed {options.seed})")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
