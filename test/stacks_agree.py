#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Stacks of real programs are libgcc's: at least 999 in 1,000, sampled.

    stacks_agree.py [--scale S] [NAME...]

The recorder is one built for this: it lets libgcc unwind every 61st stack in
the same place at the same time, and compares.
"""
import argparse
import os
import pathlib
import shutil
import struct
import sys
import tempfile

import exact
import product

CHECKED_RECORDER = product.BUILD / "test/libmalloscope_checked.so"


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--scale", type=float, default=0.2)
    arguments.add_argument("names", nargs="*")
    options = arguments.parse_args()
    bad = all_checked = all_wrong = 0
    with tempfile.TemporaryDirectory(prefix="mscope-stacks.") as folder:
        folder = pathlib.Path(folder)
        # The tool finds its recorder beside itself.
        (folder / "bin").mkdir()
        (folder / "lib/malloscope").mkdir(parents=True)
        tool = folder / "bin/malloscope"
        shutil.copy(product.MALLOSCOPE, tool)
        shutil.copy(CHECKED_RECORDER, folder / "lib/malloscope/libmalloscope.so")
        for w in exact.all_programs(folder, options.scale):
            if options.names and not any(w.name.startswith(n) for n in options.names):
                continue
            findings = folder / "findings"
            findings.write_bytes(bytes(1 << 16))
            done = product.run([str(tool), "run", "--quiet", "--force", "-o",
                                str(folder / "t.mscope"), "--", *w.command],
                               env={**os.environ, **w.env, "MSCOPE_SELF_CHECK": str(findings)},
                               timeout=600)
            data = findings.read_bytes()
            checked, wrong, frames, _ = struct.unpack_from("4Q", data)
            problems = []
            if done.code != 0:
                problems.append(f"exit {done.code}: {product.tail(done.err)}")
            if checked < 5:
                problems.append(f"only {checked} stacks were compared")
            if wrong * 1000 > checked:
                problems.append(data[32:].split(b"\0")[0].decode()[:2000])
            mean = frames / max(checked, 1)
            print(f"{'BAD ' if problems else 'ok  '} {w.name:22} {checked} stacks of {mean:.1f} "
                  f"frames, {wrong} differ", *problems, sep="\n     ", flush=True)
            bad += bool(problems)
            all_checked += checked
            all_wrong += wrong
    print(f"{all_checked} stacks compared, {all_wrong} differ")
    sys.exit(bad > 0 or (not options.names and all_checked < 20_000))


if __name__ == "__main__":
    main()
