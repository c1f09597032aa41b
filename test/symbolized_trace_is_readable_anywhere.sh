#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# After `symbolize` a report needs none of the program's files; the figures stay what they were.
. "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache

cp "$programs/peak" ./program
record t.mscope ./program
"$malloscope" report t.mscope --json --no-cache >before.json || fail "report exits with $?"
grep -q '"file": "[^"]*peak.c"' before.json || fail "the program's lines are not known to begin with"
cp t.mscope in_place.mscope
"$malloscope" symbolize t.mscope -o named.mscope >said || fail "symbolize exits with $?"
grep -q 'named.mscope now has the names of' said || fail "it said: $(cat said)"
"$malloscope" symbolize in_place.mscope --json --no-cache >said.json || fail "in place: $?"
python3 -c 'import json; r = json.load(open("said.json")); assert r["with_line"] > 0 and r["places"] >= r["with_line"], r'
cmp -s named.mscope in_place.mscope || fail "a copy and the trace itself differ"
cmp -n "$(stat -c %s t.mscope)" t.mscope named.mscope || fail "the recording itself was changed"

rm program
compare() { # TRACE: its sites and totals are those from before
  "$malloscope" report "$1" --json --no-cache >after.json || fail "report of $1 exits with $?"
  python3 - <<'PY' || fail "$1: other sites or totals than before"
import json
before, after = json.load(open("before.json")), json.load(open("after.json"))
assert before["sites"] == after["sites"], (before["sites"][0], after["sites"][0])
for key in ("totals", "calls"): assert before[key] == after[key], key
PY
}
compare named.mscope
echo 'another program' >program # At the same path.
compare named.mscope
(compare t.mscope) >/dev/null 2>&1 && fail "the trace without names knows them too: the test proves nothing"

# Twice adds nothing, and loses nothing where the files are no longer there; a cut trace is only copied.
"$malloscope" symbolize named.mscope --no-cache >said || fail "a second time: $?"
grep -q 'had the names of .* already; nothing was added' said || fail "a second time it said: $(cat said)"
cmp -s named.mscope in_place.mscope || fail "a second time changed the trace"
compare named.mscope
head -c "$(($(stat -c %s t.mscope) - 20))" t.mscope >cut.mscope
"$malloscope" report cut.mscope --json >/dev/null 2>&1 || fail "the cut trace is not read"
head -c "$(($(stat -c %s t.mscope) / 2))" t.mscope >cut.mscope
"$malloscope" symbolize cut.mscope >/dev/null 2>err
same "exit code for a cut trace in place" $? 2
grep -q 'still being written, or was cut; -o FILE' err || fail "it said: $(cat err)"
"$malloscope" symbolize t.mscope -o named.mscope 2>/dev/null
same "exit code for a file that is there" $? 2
"$malloscope" symbolize t.mscope -o t.mscope 2>/dev/null
same "exit code for the trace itself" $? 2
"$malloscope" symbolize /bin/ls 2>/dev/null
same "exit code for no trace" $? 3
python3 - t.mscope >damaged.mscope <<'P'
import struct, sys
data = bytearray(open(sys.argv[1], "rb").read())
data[8 + 48 + struct.unpack_from("<I", data, 16)[0]] ^= 255  # Where the second chunk begins.
sys.stdout.buffer.write(data)
P
"$malloscope" symbolize damaged.mscope 2>/dev/null
same "exit code for a damaged trace" $? 3
"$malloscope" symbolize t.mscope -o /no/such/folder/x 2>/dev/null
same "exit code for an impossible file" $? 3
"$malloscope" symbolize t.mscope -o - 2>err
same "exit code for standard output" $? 2
[ -e ./- ] && fail "a file named - was written"
# A copy that does not fit is told why, leaves nothing, and a file that was there stays.
big=big.mscope
record $big "$build/bin/malloscope-demo" >/dev/null
cp named.mscope there.mscope
(trap '' XFSZ; ulimit -f 64; exec "$malloscope" symbolize $big -o there.mscope --force --no-cache 2>err)
same "exit code for a copy that does not fit" $? 3
grep -q 'File too large' err || fail "it said: $(cat err)"
cmp -s named.mscope there.mscope || fail "a failed copy replaced a good file"
ls ./*.part 2>/dev/null && fail "half a copy was left"
exit 0
