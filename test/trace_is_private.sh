#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The trace is readable by its owner alone, and holds no environment.
. "$(dirname "$0")/here.sh"

SECRET_WORD=xyzzy-plugh record t.mscope "$programs/hello" >/dev/null || fail "exit $?"
same mode "$(stat -c %a t.mscope)" 600
grep -qa xyzzy-plugh t.mscope && fail "the environment is in the trace"
exit 0
