#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# An existing -o file is refused before the program starts; --force replaces it.
. "$(dirname "$0")/here.sh"

echo precious >t.mscope
"$malloscope" run -o t.mscope -- touch started 2>err
same "exit code" $? 2
[ -e started ] && fail "the program was started"
same "the file" "$(cat t.mscope)" precious
grep -q t.mscope err || fail "the message does not name the file: $(cat err)"
"$malloscope" run --force --quiet -o t.mscope -- touch started || fail "--force: exit $?"
[ -e started ] || fail "with --force the program was not started"
ask t.mscope 'r["malloscope"]' >/dev/null

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
"$malloscope" export t.mscope --format folded -o no/such/folder 2>err
same "exit code of an export that cannot be written" $? 3
