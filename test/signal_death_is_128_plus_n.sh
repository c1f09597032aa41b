#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# A program that dies of signal n gives 128 + n, and the trace says so.
. "$(dirname "$0")/here.sh"

for pair in abort:6 kill:9 segv:11 pipe:13 term:15; do
  way=${pair%:*} n=${pair#*:}
  record $way.mscope "$programs/ends" $way >/dev/null
  same "exit code after $way" $? $((128 + n))
  says $way.mscope 'processes[0]["exit"]' "{'signal': $n}"
done
