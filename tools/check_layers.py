#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if a file under src/ includes a folder that its own may not.

The allowed edges are the `layers` block of ARCHITECTURE.md, so that the picture
and the code cannot disagree.
"""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
block = re.search(r"```layers\n(.*?)```", (root / "ARCHITECTURE.md").read_text(), re.S)
if not block:
    sys.exit("ARCHITECTURE.md has no `layers` block")
allowed = {}
for line in block[1].strip().splitlines():
    folder, _, below = line.partition(":")
    allowed[folder.strip()] = {folder.strip(), *below.split()}

bad = 0
for path in sorted((root / "src").rglob("*.[hc]*")):
    folder = path.relative_to(root / "src").parts[0]
    if folder not in allowed:
        print(f"{path.relative_to(root)}: the folder {folder} is not among the layers")
        bad += 1
        continue
    for number, line in enumerate(path.read_text().splitlines(), 1):
        found = re.match(r'#include "(\w+)/', line)
        if found and found[1] in allowed and found[1] not in allowed[folder]:
            print(f"{path.relative_to(root)}:{number}: {folder} may not include {found[1]}")
            bad += 1
sys.exit(bad > 0)
