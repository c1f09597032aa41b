#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Whatever moment a recording is parted at, each allocation is in one of the two parts.
. "$(dirname "$0")/here.sh"

record fork.mscope "$programs/fork_storm" storm 50 >/dev/null
record threads.mscope "$programs/handover" >/dev/null
record demo.mscope "$build/bin/malloscope-demo" >/dev/null
count() { # TRACE ARGUMENTS...
  "$malloscope" report "$@" --metric allocations --by module --json >part.json || fail "$*: exit $?"
  python3 -c 'import json; print(sum(m["allocations"] for m in json.load(open("part.json"))["modules"]))'
}
for trace in fork threads demo; do
  all=$(count $trace.mscope)
  for moment in 0.1% 7% 26% 33% 50.05% 93% peak; do
    same "$trace, parted at $moment" \
      $(($(count $trace.mscope --to $moment) + $(count $trace.mscope --from $moment))) "$all"
  done
done
