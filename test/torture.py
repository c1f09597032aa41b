#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs every program of test/programs natively and profiled, and compares.

    torture.py [--long] [--native] [--detailed] [--sampled] [--cpu] [NAME...]     NAME: ends, ends.segv, ...

Three questions a program: does it behave as if alone (exit status, stdout,
stderr); are the counts what the program itself knows; and do they equal those
of an independent counter in the same process? What a program knows is said at
its own head, in the form described in programs/known.h.
"""
import argparse
import os
import pathlib
import re
import sys
import tempfile

import counter
import product


class Case:
    """One program with one set of arguments, and what is known of it."""

    def __init__(self, source, variant, n, exit_code, lines):
        self.program = product.PROGRAMS / source.stem
        self.name = source.stem + (f".{variant}" if variant else "")
        self.n, self.exit = n, exit_code
        self.arguments = [variant] if variant else []
        if n is not None:
            self.arguments.append(str(n))
        mine = [rest for key, which, rest in lines if which in ("", variant) and key == "expect"]
        self.expectations = [line.split() for line in mine]
        self.stacks = [rest.split() for key, _, rest in lines if key == "stack"]
        said = {key: rest for key, which, rest in lines if which in ("", variant)}
        self.needs_root = "root" in said.get("needs", "")
        self.use_counter = said.get("counter") != "off"
        self.compare_stderr = said.get("stderr") != "ignored"
        self.threads = "pthread" in source.read_text() or "std::thread" in source.read_text()


def cases(long):
    for source in sorted((product.ROOT / "test/programs").glob("*.c*")):
        head = source.read_text().split("#include")[0]
        lines = re.findall(r"^// (run|expect|stack|needs|counter|stderr) ?(\w*): (.*)$", head, re.M)
        if "-shared" in head or "// run: -\n" in head:
            continue  # A library, or a program that another test drives.
        for run in [rest for key, _, rest in lines if key == "run"] or [""]:
            variant = next((w for w in run.split() if "=" not in w), "")
            options = dict(w.split("=") for w in run.split() if "=" in w)
            n = options.get("long", options.get("n")) if long else options.get("n")
            yield Case(source, variant, n and int(n), int(options.get("exit", 0)), lines)


def known_counts(case, report):
    """What the report gets wrong of what the program knows."""
    wrong = []
    for who, *facts in case.expectations:
        if who in ("totals", "calls", "recorder"):
            got = report[who]
        elif who == "processes":
            got = {"count": len(report["processes"])}
        else:
            mine = [s for s in report["sites"] if re.match(re.escape(who) + r"\b", s["function"])]
            got = {k: sum(s[k] for s in mine) for k in
                   ("allocations", "allocated_bytes", "peak_bytes", "live_bytes", "live_blocks",
                    "temporary")}
        for fact in facts:
            key, _, value = fact.partition("=")
            least = value.startswith(">=")
            want = eval(value.removeprefix(">="), {"n": case.n})  # Our own sources.
            if got[key] < want if least else got[key] != want:
                wrong.append(f"{who} {key}: {got[key]}, should be {'at least ' * least}{want}")
    for stack in case.stacks:
        wrong += wrong_stack(stack, report)
    sites_peak = sum(s["peak_bytes"] for s in report["sites"])
    if sites_peak != report["totals"]["peak_bytes"]:
        wrong.append(f"sites add up to {sites_peak}, the peak is {report['totals']['peak_bytes']}")
    t = report["totals"]
    if t["allocated_bytes"] - t["freed_bytes"] != t["live_bytes"]:
        wrong.append("allocated - freed is not live")
    if report["recorder"]["lost"]:
        wrong.append(f"lost {report['recorder']['lost']}")
    if not report["trace"]["complete"]:
        wrong.append("the trace is not complete")
    return wrong


def wrong_stack(want, report):
    """The stack of the site want[0], innermost first; `...` stands for any frames."""
    pattern = "".join(r"(\S+ )*?" if f == "..." else re.escape(f) + " " for f in want)
    for site in report["sites"]:
        names = [re.sub(r"[ (].*", "", f["function"]) for f in site["stack"]]
        if names[0] == want[0]:
            return [] if re.match(pattern, " ".join(names) + " ") else \
                [f"stack of {want[0]}: {' '.join(names)}, should be {' '.join(want)}"]
    return [f"no site {want[0]}"]


def try_case(case, folder, options):
    """The three verdicts, each empty or a list of what is wrong."""
    env = {**os.environ, "LC_ALL": "C"}
    command = [case.program, *case.arguments]
    native = product.run(command, env=env)
    if native.code != case.exit:
        return ([f"natively it exits with {native.code}: {product.tail(native.out)}"], [], [])
    trace = pathlib.Path(folder) / "t.mscope"
    profiled = product.profile(command, trace, *options, env=env)
    differs = profiled.same_as(native, case.compare_stderr)
    behaviour = [differs] if differs else []
    try:
        counts = known_counts(case, product.complete_report(trace))
    except (RuntimeError, KeyError, ValueError) as error:
        counts = [f"{type(error).__name__}: {error}"]
    counted = []
    if case.use_counter:
        totals = pathlib.Path(folder) / "counter"
        totals.mkdir()
        os.chmod(folder, 0o755), os.chmod(totals, 0o777)
        env.update(COUNTER_DIR=str(totals), LD_PRELOAD=str(product.COUNTER))
        counted_run = product.profile(command, trace, *options, env=env)
        try:
            answer = product.complete_report(trace)
            counted = counter.differences(answer, totals, case.threads)
            if counted_run.code is None:
                counted.insert(0, "did not end")
        except (RuntimeError, KeyError, ValueError) as error:
            counted = [f"{type(error).__name__}: {error}"]
    return behaviour, counts, counted


def try_natively(case):
    """Is the program right about itself, and does the counter say so?"""
    command = [case.program, *case.arguments]
    native = product.run(command)
    wrong = [] if native.code == case.exit else [f"exit {native.code}"]
    if case.use_counter:
        with tempfile.TemporaryDirectory(prefix="mscope-test.") as folder:
            os.chmod(folder, 0o777)
            counted = product.run(command, env={**os.environ, "COUNTER_DIR": folder,
                                                "LD_PRELOAD": str(product.COUNTER)})
            if counted.code != native.code:
                wrong.append(f"behind the counter it exits with {counted.code}")
            seen = counter.images(folder)
        total = {k: sum(i[k] for i in seen) for k in counter.TOTALS + counter.CALLS}
        wrong += [f"{fact}, counter {total[key]}" for who, *facts in case.expectations
                  if who in ("totals", "calls") for fact in facts
                  for key, _, value in [fact.partition("=")]
                  if key in total and not value.startswith(">=")
                  and total[key] != eval(value, {"n": case.n})]
    print(f"{'BAD ' if wrong else 'ok  '} {case.name:32} {native.seconds:.2f} s "
          f"{product.tail(native.out)[-60:]}", *wrong, sep="\n     " if wrong else "", flush=True)


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--long", action="store_true")
    arguments.add_argument("--native", action="store_true",
                           help="only check the programs themselves")
    arguments.add_argument("--detailed", action="store_true",
                           help="with the stacks of frees and the times of calls")
    arguments.add_argument("--sampled", action="store_true",
                           help="with a sample that all blocks of 2 bytes and more are in")
    arguments.add_argument("--cpu", action="store_true", help="with samples of CPU time")
    arguments.add_argument("names", nargs="*")
    options = arguments.parse_args()
    run_options = (["--free-stacks", "--time-calls"] if options.detailed
                   else ["--sample", "2"] if options.sampled else ["--cpu"] if options.cpu else [])
    tally = {"behaviour": [0, 0], "counts": [0, 0], "counter": [0, 0]}
    for case in cases(options.long):
        if options.names and not {case.name, case.name.split(".")[0]} & set(options.names):
            continue
        if case.needs_root and os.geteuid() != 0:
            print(f"skip {case.name}: only root can set it up")
            continue
        if options.native:
            try_natively(case)
            continue
        with tempfile.TemporaryDirectory(prefix="mscope-test.") as folder:
            verdicts = dict(zip(tally, try_case(case, folder, run_options)))
        if not case.use_counter:
            del verdicts["counter"]
        bad = any(verdicts.values())
        print(f"{'BAD ' if bad else 'ok  '} {case.name:32}",
              " ".join(f"{k} {'WRONG' if v else 'ok'}" for k, v in verdicts.items()), flush=True)
        for kind, wrong in verdicts.items():
            tally[kind][0] += not wrong
            tally[kind][1] += 1
            for line in wrong[:8]:
                print(f"     {kind}: {line}")
    print(", ".join(f"{kind} {good}/{all_}" for kind, (good, all_) in tally.items()))
    sys.exit(any(good != all_ for good, all_ in tally.values()))


if __name__ == "__main__":
    main()
