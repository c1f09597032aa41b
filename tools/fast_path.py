#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions of the hooks and of what they call for every event, and compares
them with test/fast_path.golden: a change that adds a load to malloc shows in the diff.

    fast_path.py libmalloscope.so [--update]

The counts are those of gcc 12's release build; with another compiler there is nothing to compare.
"""
import pathlib
import re
import subprocess
import sys

FUNCTIONS = ["malloc", "free", "calloc", "realloc", "_Znwm", "_ZdlPv", "_ZdlPvm",
             "malloscope::record::record_block", "malloscope::record::record_free",
             "malloscope::record::stack_of", "malloscope::record::tick_among_threads"]
golden = pathlib.Path(__file__).resolve().parent.parent / "test/fast_path.golden"
library = sys.argv[1]

compiler = subprocess.run(["readelf", "-p", ".comment", library], capture_output=True, text=True).stdout
if "12.2.0" not in compiler:
    print("not built by gcc 12: nothing to compare")
    sys.exit(77)

listing = subprocess.run(["objdump", "-d", "-C", "--no-show-raw-insn", library],
                         capture_output=True, text=True, check=True).stdout
rows = {}
for body in re.split(r"\n\n", listing):
    head = re.match(r"[0-9a-f]+ <(.*)>:\n", body)
    name = re.sub(r"\(.*", "", head[1]) if head else None
    # With -C, operators are shown by their C++ names.
    for symbol, shown in [("_Znwm", "operator new"), ("_ZdlPv", "operator delete")]:
        if head and head[1] in (f"{shown}(unsigned long)", f"{shown}(void*)"):
            name = symbol
    if head and head[1] == "operator delete(void*, unsigned long)":
        name = "_ZdlPvm"
    if name not in FUNCTIONS or "[clone" in head[1]:
        continue
    count = dict.fromkeys(["all", "call", "jump", "load", "store"], 0)
    for line in body.splitlines()[1:]:
        found = re.match(r"\s*[0-9a-f]+:\s+(?:\w+ )?(\w+)\s*(.*)", line)
        if not found or found[1].startswith("nop") or found[1] in ("xchg", "data16", "cs"):
            continue
        operation, operands = found[1], found[2]
        count["all"] += 1
        count["call"] += operation == "call"
        count["jump"] += operation.startswith("j")
        if "(" in operands and operation not in ("lea", "call"):
            is_store = operands.rstrip().endswith(")") and not operation.startswith(("cmp", "test"))
            count["store" if is_store else "load"] += 1
    rows[name] = count

table = ["# Instructions of the hot path, release build, gcc 12 (tools/fast_path.py --update)",
         f"{'function':42} {'all':>5} {'call':>5} {'jump':>5} {'load':>5} {'store':>5}"]
for name in FUNCTIONS:
    if name in rows:
        table.append(f"{name:42} " + " ".join(f"{n:5}" for n in rows[name].values()))
text = "\n".join(table) + "\n"
if "--update" in sys.argv:
    golden.write_text(text)
elif golden.read_text() != text:
    print("the hot path has changed; if that is meant, run tools/fast_path.py --update\n")
    print("was:\n" + golden.read_text() + "\nis:\n" + text)
    sys.exit(1)
