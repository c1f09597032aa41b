#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Names are looked up once: a second report opens no debug information, and says the same.
. "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache

record t.mscope "$programs/peak"
"$malloscope" report t.mscope --by function --full-names >first
kept=$(find cache/malloscope -name '*.names' | wc -l)
[ "$kept" -ge 2 ] || fail "$kept modules in the cache"
same "rights of the folder" "$(stat -c %a cache/malloscope)" 700
"$malloscope" report t.mscope --by function --full-names >second
cmp first second || fail "the second report differs"
"$malloscope" report t.mscope --by function --full-names --no-cache >third
cmp first third || fail "without the cache the report differs"

# The second time the program is not even opened.
if command -v strace >/dev/null; then
  strace -f -e trace=openat -o calls "$malloscope" report t.mscope --by function >/dev/null
  grep -q "$programs/peak\"" calls && fail "the program was opened again"
fi

# Damaged, foreign and unwritable caches only cost time.
for file in cache/malloscope/*.names; do echo rubbish >"$file"; done
"$malloscope" report t.mscope --by function --full-names >fourth
cmp first fourth || fail "a damaged cache changes the report"
rm -r cache && touch cache
"$malloscope" report t.mscope --by function --full-names >fifth || fail "exit code $? without a cache folder"
cmp first fifth || fail "a file in the cache's place changes the report"
rm cache

# Two at once.
for i in 1 2 3 4; do "$malloscope" report t.mscope --by function --full-names >"at_once.$i" & done
wait
for i in 1 2 3 4; do cmp first "at_once.$i" || fail "one of four at once differs"; done
same "files left over" "$(find cache -name '*.new' | wc -l)" 0
