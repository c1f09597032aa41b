# SPDX-License-Identifier: Apache-2.0
"""Where the product and the test programs are, and how a test runs them."""
import json
import os
import pathlib
import signal
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("MSCOPE_BUILD", ROOT / "build/release"))
MALLOSCOPE = os.environ.get("MALLOSCOPE", str(BUILD / "bin/malloscope"))
PROGRAMS = BUILD / "test/programs"
COUNTER = BUILD / "test/libcounter.so"


class Result:
    """How a command ended: code is negative for a signal, None if it took too long."""

    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds

    def same_as(self, native, stderr=True):
        """Why a profiled run differs from the native one; empty if it does not."""
        want = native.code if native.code >= 0 else 128 - native.code
        if self.code is None:
            return "did not end"
        if self.code != want:
            return f"exit {self.code}, natively {want}; {tail(self.err or self.out)}"
        if self.out != native.out:
            return f"stdout differs: {tail(self.out)} natively {tail(native.out)}"
        if stderr and self.err != native.err:
            return f"stderr differs: {tail(self.err)} natively {tail(native.err)}"
        return ""


def tail(text):
    text = text.decode(errors="replace").strip().replace("\n", " | ")
    return repr(text[-300:])


def run(command, timeout=60, env=None, cwd=None, stdin=subprocess.DEVNULL):
    """Runs a command in a session of its own, so that all of it can be ended."""
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([str(c) for c in command], stdin=stdin, stdout=out, stderr=err,
                                   cwd=cwd, env=env, start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = None
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        seconds = time.monotonic() - began
        out.seek(0), err.seek(0)
        return Result(code, out.read(), err.read(), seconds)


def profile(command, trace, *options, **how):
    return run([MALLOSCOPE, "run", "--quiet", "--force", *options, "-o", trace, "--", *command],
               **how)


def report(trace, *options):
    """The JSON report of a trace. A daemon may still be writing it: see complete_report."""
    done = subprocess.run([MALLOSCOPE, "report", str(trace), "--json", *options],
                          capture_output=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"report exited with {done.returncode}: {tail(done.stderr)}")
    return json.loads(done.stdout)


def complete_report(trace, seconds=5):
    """As report(), but gives the last child time to end and the collector to close the file."""
    until = time.monotonic() + seconds
    while True:
        answer = report(trace)
        if answer["trace"]["complete"] or time.monotonic() > until:
            return answer
        time.sleep(0.1)
