#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-C is the program's own affair; the recording is kept.
. "$(dirname "$0")/here.sh"

python3 -B "$root/test/terminal.py" ctrl_c "$malloscope" "$programs/terminal" t.mscope ||
  fail "see above"
says t.mscope 'site("keep", "allocations")' 2000
