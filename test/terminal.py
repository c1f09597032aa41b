#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Types at a recorded program on a terminal of its own, as a user would.

    terminal.py ctrl_c|ctrl_z MALLOSCOPE PROGRAM TRACE

With - for MALLOSCOPE the program runs alone: what is asked must hold natively too.
"""
import os
import pty
import select
import sys
import time


class Terminal:
    """An interactive shell on a pseudo-terminal; what it prints is kept in `seen`."""

    def __init__(self):
        self.seen = ""
        pid, self.fd = pty.fork()
        if pid == 0:
            os.environ.update(PS1="$ ", TERM="dumb")
            os.execvp("bash", ["bash", "--norc", "--noprofile", "-i"])

    def type(self, text):
        os.write(self.fd, text.encode())

    def expect(self, text, seconds=10):
        """Reads on until `text` has appeared, and forgets everything up to it."""
        until = time.monotonic() + seconds
        while text not in self.seen:
            ready, _, _ = select.select([self.fd], [], [], max(0, until - time.monotonic()))
            try:
                more = os.read(self.fd, 4096).decode(errors="replace") if ready else ""
            except OSError:
                more = ""
            if not more:
                sys.exit(f"waited for {text!r}, saw {self.seen[-600:]!r}")
            self.seen += more
        self.seen = self.seen.split(text, 1)[1]


def main():
    what, malloscope, program, trace = sys.argv[1:]
    run = "" if malloscope == "-" else f"{malloscope} run --quiet -o {trace} -- "
    shell = Terminal()
    shell.expect("$ ")
    shell.type(f"{run}{program}\n")
    shell.expect("foreground 1")
    shell.expect("ready")
    shell.type("some words\n")
    shell.expect("read some words")
    if what == "ctrl_c":
        for _ in range(2):
            time.sleep(0.1)
            shell.type("\x03")
            shell.expect("interrupted")
    else:
        for _ in range(2):
            time.sleep(0.1)
            shell.type("\x1a")
            shell.expect("Stopped")
            shell.type("echo shell again\n")
            shell.expect("\nshell again")
            shell.type("fg\n")
            shell.expect("continued")
        shell.type("quit\n")
        shell.expect("read quit")
    shell.expect("$ ")
    shell.type("echo code=$?\n")
    shell.expect("\ncode=7")
    shell.type("jobs\necho no more jobs\n")
    shell.expect("\nno more jobs")
    shell.type("exit\n")


if __name__ == "__main__":
    main()
