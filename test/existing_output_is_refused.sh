#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An existing -o file is refused before the program starts; --force replaces it if it is a trace,
# and nothing else: what was mistyped is not lost.
. "$(dirname "$0")/here.sh"

echo precious >t.mscope
"$malloscope" run -o t.mscope -- touch started 2>err
same "exit code" $? 2
[ -e started ] && fail "the program was started"
same "the file" "$(cat t.mscope)" precious
grep -q t.mscope err || fail "the message does not name the file: $(cat err)"
"$malloscope" run --force -o t.mscope -- touch started 2>err
same "exit code for what is no trace, with --force" $? 2
[ -e started ] && fail "the program was started"
same "the file" "$(cat t.mscope)" precious
grep -q "t.mscope is not a trace" err || fail "what is said of no trace: $(cat err)"
: >t.mscope
for there in "an empty file" "a trace"; do
  rm -f started
  "$malloscope" run --force --quiet -o t.mscope -- touch started || fail "--force on $there: exit $?"
  [ -e started ] || fail "with --force on $there the program was not started"
  ask t.mscope 'r["malloscope"]' >/dev/null
done
"$malloscope" run --force --quiet -o /dev/null -- touch started || fail "a device: exit $?"

# The program to run is no place for its trace, by whatever name.
cp "$(type -P true)" victim
ln -s victim other
for force in --quiet --force; do
  for output in victim ./victim other "$work/victim"; do
    "$malloscope" run $force -o "$output" ./victim 2>err
    same "exit code of $force -o $output ./victim" $? 2
    grep -q "$output is the program itself" err || fail "what is said of the program: $(cat err)"
  done
done
cmp victim "$(type -P true)" || fail "the program was changed"

# What is no file is refused even with --force, and nothing hangs.
mkfifo pipe
for output in pipe .; do
  timeout 10 "$malloscope" run --force -o "$output" -- touch "for-$output" 2>err
  same "exit code for $output" $? 2
  [ -s err ] || fail "nothing was said about $output"
done
[ -e for-pipe ] && fail "the program was started"
"$malloscope" export t.mscope --format folded --force -o t.mscope 2>err
same "exit code of an export onto the trace itself" $? 2
ask t.mscope 'r["malloscope"]' >/dev/null
# Another recording is not lost to what is none.
cp t.mscope other.mscope
for words in "export t.mscope --format folded" "html t.mscope"; do
  # shellcheck disable=SC2086
  "$malloscope" $words --force -o other.mscope 2>err
  same "exit code of $words onto another recording" $? 2
  grep -q "other.mscope is a recording" err || fail "what is said of another recording: $(cat err)"
  cmp t.mscope other.mscope || fail "$words has replaced another recording"
  echo old >old.txt
  # shellcheck disable=SC2086
  "$malloscope" $words --force -o old.txt >/dev/null 2>err || fail "$words onto something else: $(cat err)"
done
"$malloscope" export t.mscope --format folded -o no/such/folder 2>err
same "exit code of an export that cannot be written" $? 3
rm -f started
"$malloscope" run -o no/such/folder.mscope -- touch started 2>err
same "exit code of a trace that cannot be written" $? 3
grep -q "cannot write no/such/folder.mscope" err || fail "what is said of no folder: $(cat err)"
[ -e started ] && fail "the program was started"
exit 0
