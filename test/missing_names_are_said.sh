#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that was rebuilt since it was recorded has the names that were looked up before; and
# where they were not, every report says so.
. "$(dirname "$0")/here.sh"
export XDG_CACHE_HOME=$work/cache

cp "$programs/leaky" program
record t.mscope ./program leaks 20 >/dev/null
record other.mscope ./program leaks 10 >/dev/null
"$malloscope" leaks t.mscope --within sysExecute --json >before.json
"$malloscope" report t.mscope --tree >/dev/null
cp "$programs/peak" program

"$malloscope" leaks t.mscope --within sysExecute --json >after.json
cmp before.json after.json || fail "the names that were known are not used"

# said ARGUMENTS...: that names are missing.
said() {
  "$malloscope" "$@" >out 2>err
  grep -q 'program has been rebuilt since the recording; its functions are shown as addresses' out ||
    fail "$* does not say it: $(cat out err)"
}
for words in "report t.mscope" "report t.mscope --json" "report t.mscope --tree" \
  "report t.mscope --by site --metric live" "report t.mscope --stacks" "report t.mscope --callers" \
  "report t.mscope --view peak" "report t.mscope --view lifetimes" "leaks t.mscope" \
  "leaks t.mscope --json" "diff t.mscope other.mscope" "diff t.mscope --from 50% --to end"; do
  said $words --no-cache
done
said check t.mscope --max-live 1G --no-cache
"$malloscope" diff t.mscope other.mscope --no-cache | grep -q '^In t.mscope: program has been' ||
  fail "diff does not tell which recording has no names"
"$malloscope" info t.mscope | grep -q "$work/program  (rebuilt since)" || fail "info does not say it"
rm program
"$malloscope" info t.mscope | grep -q "$work/program  (gone since)" || fail "info does not say it"
"$malloscope" report t.mscope --no-cache | grep -q "With the file of then in DIR, --debug-dir DIR" ||
  fail "nothing is said about --debug-dir"
"$malloscope" report t.mscope | grep 'shown as addresses' && fail "said although names are known"
exit 0
