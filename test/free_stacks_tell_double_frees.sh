#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With --free-stacks a double free is told with three stacks, and lifetimes by who frees; without,
# that there was one.
. "$(dirname "$0")/here.sh"

export LD_PRELOAD=$programs/libslow_malloc.so
"$malloscope" run -q --free-stacks -o with.mscope "$programs/double_free" || fail "run: $?"
record without.mscope "$programs/double_free" || fail "run: $?"
unset LD_PRELOAD

"$malloscope" leaks with.mscope --json >leaks.json || fail "leaks: $?"
python3 - <<'P' || exit 1
import json
rows = json.load(open("leaks.json"))["bad_frees"]
got = [(r["what"], r["function"]) for r in rows]
want = [("freed again", "destroy_session"), ("first freed", "close_session"),
        ("allocated", "make_session"),
        ("freed again", "free_moved"), ("first freed", "grow"), ("allocated", "make_session"),
        ("freed, was no block", "free_inside")]
assert got == want, got
assert all(r["stack"][0]["function"] == r["function"] for r in rows), rows
assert all(any(f["function"] == "main" for f in r["stack"]) for r in rows), rows
assert [r["number"] for r in rows] == [1, 1, 1, 2, 2, 2, 3], rows
P
"$malloscope" leaks with.mscope >text || fail "leaks: $?"
grep -q '3 double or bad frees' text || fail "$(cat text)"
"$malloscope" leaks with.mscope --fail 2>err >/dev/null
same "exit code of --fail" $? 1
grep -q '3 double or bad frees' err || fail "$(cat err)"

"$malloscope" leaks without.mscope >text || fail "leaks: $?"
grep -q '3 frees of what was no block.*--free-stacks' text || fail "$(cat text)"

# A real program: the frees by pair of sites are all its frees, and nothing is unmatched.
"$malloscope" run -q --free-stacks -o sqlite.mscope sqlite3 :memory: \
  'create table t(a); insert into t values (1), (2); select * from t' >/dev/null || fail "run: $?"
"$malloscope" report sqlite.mscope --view lifetimes --json >lifetimes.json || fail "report: $?"
freed=$(python3 -c 'import json; print(sum(x["blocks"] for x in json.load(open("lifetimes.json"))["freed_by"]))')
says sqlite.mscope 't["frees"]' "$freed"
says sqlite.mscope 't["unmatched_frees"]' 0
