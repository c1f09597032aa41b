#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Loads that nobody here wrote: stress-ng, and redis under its own benchmark.

Each ends as it does natively, and something of it was recorded.
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

import product

STRESSORS = ["--malloc 1 --malloc-ops 20000 --malloc-bytes 32M", "--fork 1 --fork-ops 500",
             "--vfork 1 --vfork-ops 500", "--pthread 1 --pthread-ops 200 --pthread-max 64",
             "--signest 1 --signest-ops 300", "--sigabrt 1 --sigabrt-ops 100",
             "--sigsegv 1 --sigsegv-ops 500", "--daemon 1 --daemon-ops 50",
             "--context 1 --context-ops 5000", "--clone 1 --clone-ops 200",
             "--dynlib 1 --dynlib-ops 100", "--exit-group 1 --exit-group-ops 100",
             "--spawn 1 --spawn-ops 100", "--mmapfork 1 --mmapfork-ops 20"]


def stress(folder):
    for options in STRESSORS:
        command = ["stress-ng", "-q", "--timeout", "20", *options.split()]
        native = product.run(command, 90, cwd=folder)
        ours = product.profile(command, folder / "t.mscope", timeout=120, cwd=folder)
        wrong = "" if ours.code == native.code else f"exit {ours.code}, natively {native.code}"
        yield f"stress-ng {options}", wrong or recorded(folder / "t.mscope", 100)


def recorded(trace, least):
    try:
        answer = product.complete_report(trace)
    except (RuntimeError, KeyError, ValueError) as error:
        return str(error)
    totals = answer["totals"]
    if totals["allocations"] < least:
        return f"only {totals['allocations']} allocations"
    bad = {k: totals[k] for k in ("order_violations", "unmatched_frees") if totals[k]}
    return f"{bad}" if bad else ""


def redis(folder):
    port = "7391"
    trace = folder / "redis.mscope"
    server = subprocess.Popen([product.MALLOSCOPE, "run", "--quiet", "-o", str(trace), "--",
                               "redis-server", "--port", port, "--save", ""],
                              stdout=subprocess.DEVNULL, cwd=folder)
    client = ["redis-cli", "-p", port]
    for _ in range(100):
        if subprocess.run([*client, "ping"], capture_output=True).stdout == b"PONG\n":
            break
        time.sleep(0.1)
    bench = product.run(["redis-benchmark", "-p", port, "-n", "20000", "-q", "-t",
                         "set,get,lpush,sadd,hset"], 120)
    subprocess.run([*client, "shutdown", "nosave"], capture_output=True)
    try:
        code = server.wait(60)
    except subprocess.TimeoutExpired:
        server.kill()
        code = None
    wrong = f"server exit {code}, benchmark exit {bench.code}" if code or bench.code else ""
    yield "redis-benchmark", wrong or recorded(trace, 10000)


def main():
    bad = 0
    with tempfile.TemporaryDirectory(prefix="mscope-loads.") as name:
        folder = pathlib.Path(name)
        os.chmod(folder, 0o755)
        for load, needs in ((stress, "stress-ng"), (redis, "redis-server")):
            if not shutil.which(needs):
                print(f"skip {needs}: not installed")
                continue
            for what, wrong in load(folder):
                print(f"{'BAD ' if wrong else 'ok  '} {what} {wrong}", flush=True)
                bad += bool(wrong)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
