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
refused history t.mscope --max-growth nan
refused leaks t.mscope --suppressions /dev/zero
refused report t.mscope --rules /dev/zero
refused check t.mscope --budget /dev/zero
"$malloscope" leaks t.mscope --sort bytes --columns bytes >/dev/null || fail "leaks --sort: $?"
