#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What cannot be profiled runs with its own exit code, at once, and one sentence says why.
. "$(dirname "$0")/here.sh"

tried=0
for kind in static static_pie musl musl_static 32 asan tsan; do
  program=$programs/hello_$kind
  [ -x "$program" ] && "$program" >/dev/null 2>&1 || continue
  tried=$((tried + 1))
  began=$(date +%s%N)
  "$malloscope" run -o $kind.mscope -- "$program" 6 >out 2>err
  same "exit code of $kind" $? 6
  same "stdout of $kind" "$(cat out)" hello
  [ $((($(date +%s%N) - began) / 1000000)) -lt 2000 ] || fail "$kind took too long"
  [ -s err ] || fail "nothing was said about $kind"
  grep -qi 'error\|cannot be preloaded\|asan runtime' err && fail "$kind: $(cat err)"
done
[ $tried -ge 3 ] || skip "none of them can be built here"
