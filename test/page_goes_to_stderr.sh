#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The page is on stderr, names the trace and what to type next; stdout is the program's.
. "$(dirname "$0")/here.sh"

"$malloscope" run -o t.mscope -- "$programs/hello" >out 2>err || fail "exit $?"
same stdout "$(cat out)" hello
for word in t.mscope keep 'malloscope report' 'malloscope leaks' ' --view ' peak; do
  grep -qi -- "$word" err || fail "the page does not say '$word': $(cat err)"
done
# What it says to type next works as it stands.
sed -n '/^Next/,$s/^  //p' err >next
[ "$(wc -l <next)" -ge 4 ] || fail "too little to type next: $(cat next)"
while read -r line; do
  if [[ $line == *" view "* ]]; then
    bash -c "exec $line --no-open" >typed 2>&1 &
    wait_for 10 grep -q '^http://127' typed || fail "$line: $(cat typed)"
    kill $!
    continue
  fi
  bash -c "$line" >typed 2>&1 || fail "$line: $(cat typed)"
done <next
grep -q ' view ' next || fail "the viewer is not named: $(cat next)"
grep -q $'\033' err && fail "colours off a terminal"
[ "$(wc -l <err)" -le 60 ] || fail "$(wc -l <err) lines is more than a page"
