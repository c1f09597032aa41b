# SPDX-License-Identifier: Apache-2.0
"""Reads what test/counter/counter.c counted, and compares a report with it."""
import pathlib
import struct

CALLS = ("malloc calloc realloc reallocarray memalign aligned_alloc posix_memalign valloc pvalloc"
         " free").split()
TOTALS = ("allocations reallocations frees inherited_frees allocated_bytes freed_bytes live_bytes"
          " live_blocks peak_bytes temporary failed unmatched_frees").split()


def images(folder):
    """One dict for each image that was counted: program, pid, forked, calls and totals."""
    found = []
    for path in sorted(pathlib.Path(folder).iterdir()):
        raw = path.read_bytes()
        names = ["forked", *CALLS, *TOTALS]
        values = struct.unpack_from(f"<{len(names)}Q", raw, 64)
        found.append({"program": raw[:64].rstrip(b"\0").decode(errors="replace"),
                      "pid": int(path.name.split(".")[0]), **dict(zip(names, values))})
    # The tools are preloaded too; theirs is no part of the recording.
    return [i for i in found if i["program"] != "malloscope"]


def differences(report, folder, threads=False, ignore=()):
    """What the report says and the counter does not, as sentences; empty if they agree."""
    counted = images(folder)
    pids = {p["pid"] for p in report["processes"]}
    counted = [i for i in counted if i["pid"] in pids]
    if not counted:
        return ["the counter saw no process of the trace"]
    wrong = []

    def compare(name, got, want):
        if got != want and name not in ignore:
            wrong.append(f"{name}: report {got}, counter {want} ({got - want:+d})")

    for name in TOTALS:
        # The highest sum of several images or threads depends on how they interleave.
        if name == "peak_bytes" and (threads or len(counted) > 1):
            continue
        compare(name, report["totals"][name], sum(i[name] for i in counted))

    # Behind operator new stand malloc and aligned_alloc.
    calls = report["calls"]
    stands_for = {"malloc": ["malloc", "new", "new_array"],
                  "aligned_alloc": ["aligned_alloc", "new_aligned", "new_array_aligned"],
                  "free": ["free", "free_sized", "free_aligned_sized", "cfree", "delete",
                           "delete_array", "delete_aligned", "delete_array_aligned"]}
    for name in CALLS:
        got = sum(calls.get(n, 0) for n in stands_for.get(name, [name]))
        compare(f"calls.{name}", got, sum(i[name] for i in counted))
    return wrong
