#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the program returns, run returns.
. "$(dirname "$0")/here.sh"

for code in 0 1 3 42 125 255; do
  record t$code.mscope "$programs/hello" $code >/dev/null
  same "exit code" $? $code
done
"$malloscope" "$programs/hello" 9 >/dev/null 2>&1
same "exit code without a verb" $? 9
