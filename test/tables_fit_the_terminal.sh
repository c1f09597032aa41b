#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# No line of any report is wider than a terminal of 80 columns or more, but for file names.
. "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache

record t.mscope "$build/bin/malloscope-demo" >/dev/null
record threads.mscope "$programs/passing" 3 2000 >/dev/null
cat >widths.py <<'P'
import fcntl, os, pty, struct, subprocess, sys, termios
tool, traces = sys.argv[1], sys.argv[2:]
verbs = [["report"], ["report", "--metric", "live"], ["report", "--by", "site"], ["report", "--tree"],
         ["report", "--callers"], ["report", "--stacks"], ["leaks"], ["leaks", "--stacks"], ["info"],
         ["history"], ["check", "--max-peak", "1K"], ["report", "--by", "type"]]
verbs += [["report", "--view", v] for v in
          "peak lifetimes sizes threads growth churn rss mappings pages".split()]
def lines(columns, words):
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(words, stdout=inner, stderr=subprocess.DEVNULL) as child:
        os.close(inner)
        text = b""
        try:
            while more := os.read(outer, 65536):
                text += more
        except OSError:
            pass
    os.close(outer)
    return text.decode().replace("\r", "").split("\n")
bad = 0
for trace in traces:
    for verb in verbs:
        for columns in (80, 120):
            words = [tool, verb[0], trace, *verb[1:], "--color", "never"]
            for line in lines(columns, words):
                if len(line) > columns and "malloscope" not in line and "/tmp/" not in line:
                    print(columns, len(line), " ".join(words[1:]), "|", line)
                    bad += 1
sys.exit(bad > 0)
P
python3 widths.py "$malloscope" t.mscope threads.mscope || fail "wider than the terminal"
