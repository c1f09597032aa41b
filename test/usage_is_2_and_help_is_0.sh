#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Wrong usage exits with 2; --help and --version work on every verb.
. "$(dirname "$0")/here.sh"

"$malloscope" --version >out || fail "--version: exit $?"
grep -q '[0-9]\.[0-9]' out || fail "--version says $(cat out)"
for verb in "" run report leaks diff merge check history symbolize info export; do
  "$malloscope" $verb --help >out || fail "$verb --help: exit $?"
  [ -s out ] || fail "$verb --help says nothing on stdout"
done
for wrong in "run" "report" "report --no-such-option x" "export x --format nonsense" \
  "run --no-such-option -- true" "collect 1" "collect"; do
  "$malloscope" $wrong >/dev/null 2>err
  same "exit code of '$wrong'" $? 2
  [ -s err ] || fail "'$wrong': no message"
done

# What the metrics are is told where they are asked for.
for verb in report export diff; do
  "$malloscope" $verb --help | grep -q '^ *temporary  *allocations that were freed' || fail "$verb --help explains no metrics"
done

# An unset variable of a script does not switch off what it asks for.
record t.mscope "$programs/hello" >/dev/null
refused() { # ARGUMENTS...
  "$malloscope" "$@" >/dev/null 2>err
  same "exit code of '$*'" $? 2
  [ -s err ] || fail "'$*': no message"
}
refused leaks t.mscope --max-bytes ""
refused leaks t.mscope --max-new-against ""
refused report t.mscope --from ""
for list in "" , program,,peak ,peak peak,; do
  refused history t.mscope --columns "$list"
  refused replay t.mscope --allocators "$list"
done
grep -q "'peak,' has an empty word" err || fail "a list with a comma too many: $(cat err)"
refused diff t.mscope --from 60% --to 20%
grep -q -- "--from 60% is after --to 20%" err || fail "diff backwards says '$(cat err)'"
"$malloscope" diff t.mscope --from 20% --to 60% >/dev/null || fail "diff of two moments: $?"
refused history t.mscope --max-growth nan
refused leaks t.mscope --suppressions /dev/zero
refused report t.mscope --rules /dev/zero
refused check t.mscope --budget /dev/zero
refused report t.mscope --tree --sort depth
refused report t.mscope --tree --sort nonsense
"$malloscope" report t.mscope --tree --sort itself >/dev/null || fail "--tree --sort itself: $?"
"$malloscope" leaks t.mscope --sort bytes --columns bytes >/dev/null || fail "leaks --sort: $?"
"$malloscope" report t.mscope --by site --columns function,peak_bytes >out || fail "--columns function: $?"
"$malloscope" report t.mscope --by site --columns nonsense 2>err
grep -q 'there are .*function' err || fail "--columns nonsense says $(cat err)"
long=$(head -c 100000 /dev/zero | tr '\0' x)
for option in --from --by --columns --no-such; do
  "$malloscope" report t.mscope --stacks $option "$long" >/dev/null 2>err
  same "exit code of $option with 100 kB" $? 2
  [ "$(wc -c <err)" -lt 4000 ] || fail "$option: 100 kB are said back"
done

# What lies after the end of the recording is its end, and that is said.
for asked in "--view peak --at 1000s" "--metric live --to 1000s" "--to 1000s"; do
  "$malloscope" report t.mscope $asked >out 2>err || fail "$asked: $?"
  grep -q 'The recording ended at [0-9.]* s, before the 1000.000 s' err || fail "$asked says '$(cat err)'"
  "$malloscope" report t.mscope $asked --json 2>/dev/null | grep -q '"The recording ended at ' || fail "$asked --json has no note"
done
"$malloscope" export t.mscope --format folded --to 1000s -o - 2>err >/dev/null || fail "export --to: $?"
grep -q 'The recording ended at' err || fail "export --to says '$(cat err)'"
for asked in "--view peak --at end" "--to 100%" "--metric live --to peak" "--metric live"; do
  "$malloscope" report t.mscope $asked >out 2>err || fail "$asked: $?"
  [ -s err ] && fail "$asked says $(cat err)"
done

# A thread is meant by its name or its whole number; one that is not there is told.
tid=$("$malloscope" info t.mscope --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["processes"][0]["threads"][0]["tid"])')
for thread in "$tid" "^$tid\$" "${tid%?}."; do
  "$malloscope" report t.mscope --metric allocations --by module --thread "$thread" --json >out 2>err ||
    fail "--thread $thread: $?"
  [ -s err ] && fail "--thread $thread says $(cat err)"
  grep -q '"allocations": [1-9]' out || fail "--thread $thread finds nothing"
done
"$malloscope" report t.mscope --thread nobody >/dev/null 2>err || fail "--thread nobody: $?"
grep -q 'no thread of t.mscope .* --thread nobody' err || fail "--thread nobody says $(cat err)"
