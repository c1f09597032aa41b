#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A site in a program built with -g has its function, file, line, column and module.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/hello" >/dev/null || fail "exit $?"
line=$(grep -n 'malloc(size)' "$root/test/programs/known.h" | head -1 | cut -d: -f1)
kept='[s for s in sites if s["function"] == "keep"]'
says t.mscope "[(s['file'].split('/')[-1], s['line']) for s in $kept]" "[('known.h', $line)]"
# The column of the call; none where a line has several, or the program none.
column=$(sed -n "${line}p" "$root/test/programs/known.h" | grep -ob 'malloc(size)' | head -1 | cut -d: -f1)
says t.mscope "[s['column'] for s in $kept]" "[$((column + 1))]"
"$malloscope" report t.mscope --stacks --metric allocated --full-names | grep -q 'main  *hello.c:[0-9]*:[0-9]* ' || fail "no column in stacks"
cat >line.c <<'C'
#include <stdlib.h>
void *volatile kept[2];
int main(void) { kept[0] = malloc(10); kept[1] = malloc(20); }
C
gcc -g line.c -o line || fail "gcc"
record line.mscope ./line
says line.mscope '[(s["line"], s["column"], s["allocated_bytes"]) for s in sites if s["function"] == "main"]' "[(3, None, 30)]"
says t.mscope "[s['module'].split('/')[-1] for s in $kept]" "['hello']"
says t.mscope "[f['function'] for s in $kept for f in s['stack']][:2]" "['keep', 'main']"

# Without symbols a frame is module+0x1234, never the symbol that happens to come before.
record s.mscope "$programs/hello_stripped" >/dev/null || fail "exit $?"
says s.mscope 'all("hello_stripped+0x" in s["function"] and s["column"] is None for s in sites)' True
