#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# --fail, --max-bytes and --max-new-against: exit code 1 with a sentence; bad arguments: 2, unreadable
# traces: 3, each with a sentence.
. "$(dirname "$0")/here.sh"

record t.mscope "$programs/leaky" leaks 20 >/dev/null
record again.mscope "$programs/leaky" leaks 10 >/dev/null
record deep.mscope "$programs/leaky" deep 20 >/dev/null

# code EXIT SENTENCE ARGUMENTS...
code() {
  local wanted=$1 sentence=$2; shift 2
  "$malloscope" "$@" >out 2>err
  same "exit code of $*" $? "$wanted"
  [ -z "$sentence" ] && { [ ! -s err ] || fail "$*: says $(cat err)"; return; }
  grep -q -- "$sentence" err || fail "$*: says '$(cat err)', not '$sentence'"
  same "lines on stderr of $*" "$(wc -l <err)" 1
}
hits="leaks t.mscope --within sysExecute"  # 20 hits of 24, 2 x 2 cells, 20 pools of 500.
code 0 "" leaks t.mscope
code 1 "there are 44 leaks" $hits --fail
code 0 "" leaks t.mscope --within nobody
for limit in --fail "--max-bytes 5" "--max-new-against t.mscope"; do
  code 3 "no leaks, but that proves nothing: no stack has a function that matches" \
    leaks t.mscope --within nobody $limit
done
code 0 "" $hits --max-bytes 11328
code 1 "11.1 KiB leaked, 1 B more than --max-bytes 11327" $hits --max-bytes 11327
code 0 "" leaks again.mscope --max-new-against t.mscope
code 1 "1 unique leak (1 block, 33 B) that t.mscope does not have" \
  leaks deep.mscope --max-new-against t.mscope
echo 'originator:^shop::' >ours.supp
code 0 "" leaks deep.mscope --suppressions ours.supp --fail
code 2 "not a regular expression" leaks t.mscope --within '('
code 2 "not a size" leaks t.mscope --max-bytes much
code 2 "cannot be read" leaks t.mscope --suppressions nothing.supp
echo 'race:x' >bad.supp
code 2 "bad.supp:1: 'race:x' is no suppression" leaks t.mscope --suppressions bad.supp
code 2 "is after" leaks t.mscope --from 80% --to 20%
code 3 "nothing.mscope" leaks nothing.mscope
code 3 "nothing.mscope" leaks t.mscope --max-new-against nothing.mscope
code 2 "TRACE\|trace" leaks
