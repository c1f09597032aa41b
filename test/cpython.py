#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""CPython's own test suites give the same result, test by test, as without us.

    cpython.py SUITE...

A suite runs natively twice, because some tests are flaky by themselves: those
whose two native results differ are named and left out.
"""
import os
import pathlib
import re
import sys
import tempfile

import product


def results(output):
    """{test: result} from the lines of unittest -v; a docstring may come between the two."""
    found, test = {}, None
    for line in output.decode(errors="replace").splitlines():
        named = re.match(r"(test\w*) \(([\w.]+)\)", line)
        if named:
            test = f"{named[2]}.{named[1]}" if not named[2].endswith(named[1]) else named[2]
        ended = re.search(r"\.\.\. (?:.*?)(ok|FAIL|ERROR|skipped|expected failure)\b", line) or \
            re.match(r"(ok|FAIL|ERROR)$", line)
        if test and ended:
            found.setdefault(test, ended[1])
            test = None
    return found


def main():
    bad = 0
    with tempfile.TemporaryDirectory(prefix="mscope-cpython.") as folder:
        for suite in sys.argv[1:] or ["test_threading", "test_fork1"]:
            command = ["/usr/bin/python3.11", "-m", "test", "-v", suite]
            env = {**os.environ, "TMPDIR": folder}
            trace = pathlib.Path(folder) / "t.mscope"
            native = [product.run(command, 600, env=env, cwd=folder) for _ in range(2)]
            profiled = product.profile(command, trace, timeout=900, env=env, cwd=folder)
            first, second = (results(r.out + r.err) for r in native)
            ours = results(profiled.out + profiled.err)
            flaky = sorted(t for t in first.keys() | second.keys() if first.get(t) != second.get(t))
            wrong = [f"{t}: {ours.get(t, 'not run')}, natively {first[t]}"
                     for t in sorted(first) if t not in flaky and ours.get(t) != first[t]]
            wrong += [f"{t}: ran, natively not" for t in sorted(ours.keys() - first.keys())]
            if len(first) < 3:
                wrong.append(f"only {len(first)} tests ran natively: {product.tail(native[0].out)}")
            if not flaky and profiled.code != native[0].code:
                wrong.append(f"exit {profiled.code}, natively {native[0].code}")
            try:
                answer = product.complete_report(trace)
                if answer["totals"]["allocations"] < 1000:
                    wrong.append("almost nothing was recorded")
                said = f"{len(answer['processes'])} images, " \
                       f"{answer['totals']['allocations']} allocations"
            except (RuntimeError, KeyError, ValueError) as error:
                wrong.append(f"{type(error).__name__}: {error}")
                said = ""
            print(f"{'BAD ' if wrong else 'ok  '} {suite}: {len(first)} tests, {len(flaky)} flaky, "
                  f"{native[0].seconds:.1f} s natively, {profiled.seconds:.1f} s recorded; {said}",
                  *[f"flaky natively: {t}" for t in flaky], *wrong[:20], sep="\n     ", flush=True)
            bad += bool(wrong)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
