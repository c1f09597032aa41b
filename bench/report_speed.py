#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How fast `report` reads a long trace, and how little memory it takes.

    report_speed.py [MILLIONS OF EVENTS, 100 unless told]
"""
import json
import os
import resource
import subprocess
import sys
import time

import run
import workloads

millions = int(sys.argv[1]) if len(sys.argv) > 1 else 100
folder = run.BUILD / "bench"
folder.mkdir(parents=True, exist_ok=True)
trace = folder / "long.mscope"
storm = [str(workloads.build_storm(folder)), "1", str(millions * 500_000)]
subprocess.run([run.MALLOSCOPE, "run", "--quiet", "--force", "-o", str(trace), "--", *storm],
               check=True, stdout=subprocess.DEVNULL)
began = time.monotonic()
done = subprocess.run([run.MALLOSCOPE, "report", str(trace), "--json"], capture_output=True,
                      check=True)
seconds = time.monotonic() - began
used = resource.getrusage(resource.RUSAGE_CHILDREN)
answer = json.loads(done.stdout)
events = answer["totals"]["allocations"] + answer["totals"]["frees"]
print(f"{events / 1e6:.1f} M events, {os.path.getsize(trace) / events:.2f} bytes each,"
      f" lost {answer['recorder']['lost']}: report {seconds:.2f} s,"
      f" {events / seconds / 1e6:.1f} M events/s"
      f" (goal 5), at most {used.ru_maxrss / 1024:.0f} MiB (of any child)")
trace.unlink()
