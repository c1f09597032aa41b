#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Ctrl-Z stops the job, fg continues it, in an ordinary shell with job control.
. "$(dirname "$0")/here.sh"

python3 -B "$root/test/terminal.py" ctrl_z "$malloscope" "$programs/terminal" t.mscope ||
  fail "see above"
says t.mscope 'site("keep", "allocations")' 2000
