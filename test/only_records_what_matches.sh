#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --only REGEX is a pattern of RE2 for the name of the program file, or of the link it is started by,
# not for its folder; another pattern is refused before anything is started.
. "$(dirname "$0")/here.sh"

only() { "$malloscope" run --quiet --force -o t.mscope --only "$@"; }
both='"$0" 3; "$0"_stripped 3; exit 9'
only '^hello$' -- sh -c "$both" "$programs/hello" >out
same "exit code" $? 9
same stdout "$(tr '\n' ' ' <out)" "hello hello "
says t.mscope '[p["command"][0].split("/")[-1] for p in processes]' "['hello']"
says t.mscope 'site("keep", "allocations")' 1000
only '(?i)HELLO_[[:alpha:]]{8}' -- sh -c "$both" "$programs/hello" >out
says t.mscope '[p["command"][0].split("/")[-1] for p in processes]' "['hello_stripped']"
ln -s "$programs/hello" server
for name in '^server$' '^hello$'; do
  only "$name" -- ./server 3 >out
  says t.mscope 'len(processes)' 1
done
for name in 'server$' hello; do
  "$malloscope" report t.mscope --metric allocations --by module --module "$name" >out
  grep -q '/hello$' out ||
    fail "--module $name does not find a program that is started as server"
done
"$malloscope" report t.mscope --metric allocations --by module --module nobody >out
grep -q hello out && fail "--module finds all"
"$malloscope" report t.mscope >out
grep -q '^./server' out || fail "the page has another name"
only programs -- "$programs/hello" >out
says t.mscope 'len(processes)' 0
for wrong in '(' '(h)\1' '(?=hello)'; do
  only "$wrong" -- touch started 2>err
  same "exit code of --only '$wrong'" $? 2
  grep -qF -- "--only" err || fail "'$wrong': $(cat err)"
done
[ -e started ] && fail "the program was started"
# One on which a backtracking matcher would never end.
mkdir long && cp "$programs/hello" long/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab
timeout 20 "$malloscope" run --quiet --force -o t.mscope --only '^(a+)+$' -- long/a* 5 >out
same "exit code" $? 5
says t.mscope 'len(processes)' 0
