# SPDX-License-Identifier: Apache-2.0
"""How long the viewer takes on long traces; `run.py` has the tables at the end of its own, and
`run.py --only viewer` has nothing else.

The program is paths.cc, the worst case: a million stacks that come up equally often. The page is opened in headless
Chromium (viewer_speed.mjs), first without an index and then with it. Then a trace of a billion allocations (storm.cc) is
opened and asked (not with --quick, nor at a smaller scale: the recording alone takes minutes).
"""
import re
import subprocess
import sys
import time

import report_speed
import workloads

sys.path.insert(0, str(workloads.HERE.parent / "test"))
import viewer  # noqa: E402


def record(trace, command):
    report_speed.remove(trace)
    began = time.monotonic()
    subprocess.run([report_speed.MALLOSCOPE, "run", "--quiet", "--force", "-o", str(trace), "--", *command], check=True,
                   stdout=subprocess.DEVNULL)
    return time.monotonic() - began


def page_rows(trace, *options):
    script = workloads.HERE / "viewer_speed.mjs"
    done = subprocess.run(["node", str(script), report_speed.MALLOSCOPE, str(trace), *options], check=True,
                          stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


def html_row(trace, folder):
    out = folder / "long.html"
    done = subprocess.run(["/usr/bin/time", "-f", "%e %M", report_speed.MALLOSCOPE, "html", str(trace), "-f", "-o", str(out)],
                          check=True, stderr=subprocess.PIPE, text=True)
    seconds, kilobytes = done.stderr.splitlines()[-1].split()
    row = f"| html, {out.stat().st_size / 1e6:.1f} MB | {float(seconds):.0f} s, {int(kilobytes) / 1024:.0f} MiB |"
    out.unlink()
    return row


def highest_memory(process):
    with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"VmHWM:\s*(\d+)", status.read())[1]) / 1024


def answer_rows(trace):
    """Of a trace that is opened twice, without an index and with it."""
    rows = []
    for how in ("without an index", "with a warm index"):
        began = time.monotonic()
        with viewer.Page(report_speed.MALLOSCOPE, str(trace)) as page:
            rows.append(f"| ready, {how} | {time.monotonic() - began:.1f} s |")
            for what, path, words in [
                    ("flame graph at the peak", "api/flame", {}),
                    ("timeline", "api/timeline", {}),
                    ("flame graph of another range", "api/flame", {"metric": "allocated", "from": "12.3%", "to": "65.4%"}),
                    ("sites of another range", "api/sites", {"metric": "live", "to": "43.2%"}),
                    ("sizes", "api/answer/sizes", {})]:
                if path == "api/answer/sizes" and how == "without an index":
                    continue
                asked = time.monotonic()
                status, _ = page.get(path, words)
                assert status == 200, (path, status)
                if how != "without an index":
                    rows.append(f"| {what} | {time.monotonic() - asked:.2f} s |")
            rows.append(f"| server's memory, {how} | {highest_memory(page.process):.0f} MiB |")
    return rows


def facts(trace, allocations):
    return f"{allocations:,} allocations, {trace.stat().st_size / 1e9:.2f} GB of trace"


def tables(folder, scale, billion):
    program, trace = report_speed.build_paths(folder), folder / "viewer.mscope"
    walks = int(12_500_000 * scale)
    depth = 18 if scale >= 0.5 else 12
    record(trace, [program, str(walks), str(depth)])
    lines = ["", f"## The viewer: {8 * walks:,} events, {4 * 2 ** depth:,} stacks, {trace.stat().st_size / 1e6:.0f} MB", "",
             "`view` in headless Chromium without a GPU; goals: 40 s without an index, 3 s with it, 300 ms for a repaint,"
             " p95 of frames 50 ms, 2,048 MiB.", "",
             "| what | figure |", "|---|---|"]
    lines += page_rows(trace, "--cold") + page_rows(trace) + [html_row(trace, folder)]
    report_speed.remove(trace)
    if billion:
        trace = folder / "billion.mscope"
        seconds = record(trace, [str(workloads.build_storm(folder)), "1", "1000000000"])
        lines += ["", f"## The viewer: {facts(trace, 1_000_000_000)}", "",
                  f"Recorded in {seconds:.0f} s (storm.cc).", "", "| what | figure |", "|---|---|"]
        lines += answer_rows(trace)
        report_speed.remove(trace)
    return lines
