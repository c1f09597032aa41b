#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# export takes the part of the recording that is asked for, and refuses what it cannot do.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/peak" >/dev/null || fail "exit $?"
export_to() { "$malloscope" export t.mscope --format "$@"; }

sum=$(export_to folded --metric peak --focus short_flood -o - | awk '{s += $NF} END {printf "%d", s}')
want=$("$malloscope" report t.mscope --json --metric peak --focus short_flood --by function |
  python3 -c 'import json, sys; print(sum(f["self"] for f in json.load(sys.stdin)["functions"]))')
same "--focus" "$sum" "$want"
export_to folded --only-under short_flood -o - | grep -q '^short_flood[; ]' ||
  fail "--only-under: $(export_to folded --only-under short_flood -o -)"
export_to csv --hide . -o - | grep -q '\[hidden\]' || fail "--hide . leaves no [hidden]"

refused() { # EXIT-CODE SENTENCE ARGUMENTS...
  local code=$1 sentence=$2
  shift 2
  export_to "$@" 2>error >/dev/null
  same "exit code of $*" $? "$code"
  grep -q "$sentence" error || fail "$* says: $(cat error)"
}
refused 2 "knows only --process" perfetto --focus main -o x
[ ! -e x ] || fail "a refused export leaves a file"
echo old >x
refused 2 "exists already" pprof -o x
refused 2 "is the trace itself" pprof --force -o t.mscope
refused 2 "FORMAT\|format" nonsense -o y
refused 2 "missing )" csv --focus '(' -o y
refused 3 "could not be written" sqlite --force -o /dev/full
refused 3 "could not be written" pprof --force -o /dev/full
same "the file that was there" "$(cat x)" old
export_to pprof --force -o x || fail "--force: exit $?"
