#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `malloscope html` writes one file that opens from disk without a network, shows what reports say, is not
# larger than was allowed, and says what it leaves out.
. "$(dirname "$0")/here.sh"
[ -d "$root/test/browser/node_modules" ] || skip "npm ci --prefix test/browser was not run"
export MALLOSCOPE=$malloscope

record leaky.mscope "$programs/leaky" leaks 40 >/dev/null || fail "exit $?"
record python.mscope /usr/bin/python3 -c 'import json; x = [json.loads("[1, {}]") for _ in range(2000)]' ||
  fail "exit $?"
for name in leaky python; do
  "$malloscope" html $name.mscope -o $name.html 2>said || fail "exit $?: $(cat said)"
  [ ! -s said ] || fail "something was left out: $(cat said)"
  grep -qE 'https?://[^w]' $name.html && fail "$name.html names other places"
done
node "$root/test/browser/report_file.mjs" leaky.mscope "$work/leaky.html" python.mscope "$work/python.html" ||
  fail "see above"

most=$(($(stat -c %s python.html) * 19 / 20))
"$malloscope" html python.mscope -o small.html --max-size $most 2>said || fail "exit $?: $(cat said)"
[ "$(stat -c %s small.html)" -le $most ] || fail "small.html is $(stat -c %s small.html) bytes"
grep -q "heaviest are in this file\|is one of\|whole recording only\|The blocks of" said || fail "nothing was said of what is missing: $(cat said)"

refused() { # EXIT-CODE SENTENCE ARGUMENTS...
  local code=$1 sentence=$2
  shift 2
  "$malloscope" html "$@" 2>said >/dev/null
  same "exit code of html $*" $? "$code"
  grep -q "$sentence" said || fail "html $* says: $(cat said)"
}
refused 2 "exists" leaky.mscope -o leaky.html
refused 2 "too small" leaky.mscope -o x.html --max-size 10K
refused 2 "is not" leaky.mscope -o x.html --max-size much
refused 3 "No such file" nothing.mscope -o x.html
[ ! -e x.html ] || fail "a refused page leaves a file"
