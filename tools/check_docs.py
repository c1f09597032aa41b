#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fails if the documents name files or code that no longer exist."""
import pathlib
import re
import sys

root = pathlib.Path(__file__).resolve().parent.parent
code = "\n".join(p.read_text() for p in sorted((root / "src").rglob("*.[hc]*")))
bad = []
life = (root / "docs/life_of_an_allocation.md").read_text()
for name in re.findall(r"`([^`]+)`", life):
    if "/" in name:
        if not (root / name).exists():
            bad.append(f"life_of_an_allocation.md names {name}")
    elif re.fullmatch(r"\w+", name) and not re.search(rf"\b{name}\b", code):
        bad.append(f"life_of_an_allocation.md names {name}")
for document in ["ARCHITECTURE.md", "CONTRIBUTING.md"]:
    for name in re.findall(r"\b((?:src/)?(?:base|wire|unwind|record|collect|trace|symbols|analyze|output|cli)/\w+\.(?:cc|h|txt))",
                           (root / document).read_text()):
        if not (root / "src" / name.removeprefix("src/")).exists():
            bad.append(f"{document} names {name}")
for line in bad:
    print(line)
sys.exit(bool(bad))
