#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs clang-tidy over the sources, two at a time, and only over those that changed
since it last found nothing in them (their text, the headers' and the settings).

Most of the time goes to headers, which a folder's sources share: so several are looked at as one
file that includes them; where their names clash, one by one."""
import concurrent.futures
import hashlib
import json
import pathlib
import re
import subprocess
import sys

BATCH = 6

root = pathlib.Path(__file__).resolve().parent.parent
build = pathlib.Path(sys.argv[1]).resolve()
cache = build / "tidy.cache"
clean = set(cache.read_text().split()) if cache.exists() else set()

headers = hashlib.sha256()
for path in [root / ".clang-tidy", *sorted((root / "src").rglob("*.h"))]:
    headers.update(path.read_bytes())

# What gcc understands and clang does not, or takes too far; and what belongs to one file.
NOT_FOR_TIDY = re.compile(r" -(mgeneral-regs-only|fno-reorder-blocks-and-partition|Wno-restrict|Werror)\b"
                          r"| -M[DP]\b| -M[TF] \S+| -o \S+| -c \S+|^\S*ccache ")


def sources_of(entry):
    """The sources that a command compiles: one, or those that a unity build has put together."""
    path = pathlib.Path(entry["file"])
    if "Unity" not in path.parts:
        return [path]
    return [pathlib.Path(name) for name in re.findall(r'#include "(.*)"', path.read_text())]


together = {}
seen = set()
for entry in json.loads((build / "compile_commands.json").read_text()):
    for source in sources_of(entry):
        if source in seen or root / "src" not in source.parents or source.name.endswith("_test.cc"):
            continue
        seen.add(source)
        flags = NOT_FOR_TIDY.sub("", entry["command"])
        together.setdefault((source.parent, flags), []).append(source)

folder = build / "tidy"
folder.mkdir(exist_ok=True)


class Batch:
    def __init__(self, name, flags, sources):
        self.flags, self.sources = flags, sources
        self.path = folder / f"{name}.cc"
        self.path.write_text("".join(f'#include "{source}"\n' for source in sources))
        text = b"".join(source.read_bytes() for source in sources)
        self.key = hashlib.sha256(headers.digest() + flags.encode() + text).hexdigest()

    def command(self):
        return {"directory": str(build), "file": str(self.path), "command": f"{self.flags} -c {self.path}"}

    def alone(self):
        return [Batch(f"{source.parent.name}_{source.stem}", self.flags, [source]) for source in self.sources]

    def problems(self):
        """What clang-tidy says, or nothing."""
        if self.key in clean:
            return ""
        run = subprocess.run(["clang-tidy-19", "--quiet", "--checks=-bugprone-suspicious-include", "-p", str(folder),
                              str(self.path)], capture_output=True, text=True)
        if run.returncode != 0 and len(self.sources) > 1 and "clang-diagnostic-error" in run.stdout:
            return "".join(batch.problems() for batch in self.alone())
        return run.stdout + run.stderr if run.returncode != 0 else ""


batches = [Batch(f"{parent.name}_{first}_{number}", flags, sorted(sources)[first:first + BATCH])
           for number, ((parent, flags), sources) in enumerate(sorted(together.items()))
           for first in range(0, len(sources), BATCH)]
(folder / "compile_commands.json").write_text(json.dumps(
    [one.command() for batch in batches for one in (batch, *batch.alone())]))

with concurrent.futures.ThreadPoolExecutor(2) as pool:
    results = list(pool.map(Batch.problems, batches))
cache.write_text("\n".join(batch.key for batch, text in zip(batches, results) if not text))
print("\n".join(filter(None, results)), end="")
sys.exit(any(results))
