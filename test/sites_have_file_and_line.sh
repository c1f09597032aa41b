#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A site in a program built with -g has its function, file, line and module.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/hello" >/dev/null || fail "exit $?"
line=$(grep -n 'malloc(size)' "$root/test/programs/known.h" | head -1 | cut -d: -f1)
kept='[s for s in sites if s["function"] == "keep"]'
says t.mscope "[(s['file'].split('/')[-1], s['line']) for s in $kept]" "[('known.h', $line)]"
says t.mscope "[s['module'].split('/')[-1] for s in $kept]" "['hello']"
says t.mscope "[f['function'] for s in $kept for f in s['stack']][:2]" "['keep', 'main']"

# Without symbols a frame is module+0x1234, never the symbol that happens to come before.
record s.mscope "$programs/hello_stripped" >/dev/null || fail "exit $?"
says s.mscope 'all("hello_stripped+0x" in s["function"] for s in sites)' True
