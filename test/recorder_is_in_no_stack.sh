#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# exit, fork and dlclose go through the recorder, which is nobody's business: it is in no stack, tree,
# export or list of modules, and the sums are as if it were.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/early_and_late" >/dev/null || fail "exit $?"
"$malloscope" leaks t.mscope --stacks >out
grep -A4 in_atexit out | grep -q '^ *exit ' || fail "not below exit: $(cat out)"
for words in "leaks --stacks" "report --tree" "report --by function" "report --view peak --json" "info" \
  "info --json" "export --format folded -o -" "export --format json -o -" "export --format dhat -o -" \
  "export --format csv -o -" "export --format callgrind -o -"; do
  set -- $words
  verb=$1
  shift
  "$malloscope" "$verb" t.mscope "$@" >out || fail "$words: exit $?"
  [ -s out ] || fail "$words: nothing"
  grep -n libmalloscope out && fail "$words shows the recorder"
done
"$malloscope" export t.mscope --format folded --metric calls --force -o out
same "the sum of the stacks" "$(awk '{n += $NF} END {print n}' out)" "$(ask t.mscope 't["allocations"] + t["reallocations"]')"
