#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources, two at a time, and only over those that changed
since it last found nothing in them (their text, the headers' and the settings)."""
import concurrent.futures
import hashlib
import json
import pathlib
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(sys.argv[1])
cache = build / "tidy.cache"
clean = set(cache.read_text().split()) if cache.exists() else set()

headers = hashlib.sha256()
for path in [root / ".clang-tidy", *sorted((root / "src").rglob("*.h"))]:
    headers.update(path.read_bytes())

# What gcc understands and clang does not, or takes too far.
entries = json.loads((build / "compile_commands.json").read_text())
for entry in entries:
    for flag in [" -mgeneral-regs-only", " -fno-reorder-blocks-and-partition", " -Wno-restrict",
                 " -Werror"]:
        entry["command"] = entry["command"].replace(flag, "")
database = build / "tidy"
database.mkdir(exist_ok=True)
(database / "compile_commands.json").write_text(json.dumps(entries))
sources = sorted({e["file"] for e in entries if "/src/" in e["file"] and not e["file"].endswith("_test.cc")})


def tidy(source):
    key = hashlib.sha256(headers.digest() + pathlib.Path(source).read_bytes()).hexdigest()
    if key in clean:
        return key, None
    run = subprocess.run(["clang-tidy-19", "--quiet", "-p", str(database), source],
                         capture_output=True, text=True)
    return (key, None) if run.returncode == 0 else (None, run.stdout + run.stderr)


with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(tidy, sources))
cache.write_text("\n".join(key for key, _ in results if key))
problems = [text for _, text in results if text]
print("\n".join(problems), end="")
sys.exit(bool(problems))
